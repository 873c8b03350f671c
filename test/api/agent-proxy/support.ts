import { randomUUID } from 'node:crypto';
import { createServer, request, type IncomingMessage, type RequestListener } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { text } from 'node:stream/consumers';
import { AgentProxy, type AgentBounds } from '../../../api/agent-proxy/agent-proxy.js';
import type { AgentPlace } from '../../../src/agents/address/agents-by-subdomain.js';
import { openingPath } from '../../../src/agents/address/owner-ticket.js';
import { GatewayConnections } from '../../../src/agents/hosts/gateway-connections.js';
import { anonymous } from '../../../api/auth/anonymous.js';
import { endpoint } from '../../../api/http/endpoint.js';
import { reply } from '../../../api/http/reply.js';
import * as z from 'zod';
import type { RequestSeconds } from '../../../src/platform/http/request-seconds.js';
import { testSecrets } from '../../support/secrets.js';
import { HTTP_SETTINGS, serve, type TestListener } from '../http/support.js';

/** The agents of the listener: one runs, one is stopped, one has a port on which nothing listens. */
export const RUNNING = 'first-0a1b2c3d.agents.test';
export const STOPPED = 'second-0a1b2c3d.agents.test';
export const BROKEN = 'third-0a1b2c3d.agents.test';
export const UNKNOWN = 'fourth-0a1b2c3d.agents.test';
/** A name of the listener itself. */
export const OWN = 'platform.agents.test';

export interface AgentAddressLab {
  readonly listener: TestListener;
  /** Requests that the gateway got. */
  readonly seen: IncomingMessage[];
  /** Returns the path that the dashboard opens, with a ticket for the running agent. */
  openingPath(): string;
  close(): Promise<void>;
}

const health = endpoint({
  method: 'GET',
  path: '/health',
  summary: 'Health',
  tag: 'test',
  auth: anonymous,
  responses: { 200: z.strictObject({ ok: z.literal(true) }) },
  handler: () => reply(200, { ok: true }),
});

/** Answers of the gateway in place of a WebSocket, by path. */
const REFUSALS: Readonly<Record<string, string>> = {
  '/refuse': 'HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno',
  '/hint':
    'HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno',
  '/break': 'HTTP/1.1 401 Unauthorized\r\nContent-Length: 20\r\n\r\nno',
};

/** Opens no gateway on another host. */
export const farGateway = () => Promise.reject(new TypeError('not used by this test'));

/** Starts a listener with an API and the addresses of agents, and a gateway for one of them. */
export async function serveAgents(
  gateway: RequestListener,
  bounds?: Partial<AgentBounds>,
  requestsPerMinute = HTTP_SETTINGS.requestsPerMinute,
  requests?: RequestSeconds,
): Promise<AgentAddressLab> {
  const seen: IncomingMessage[] = [];
  const server = createServer((asked, response) => {
    seen.push(asked);
    gateway(asked, response);
  });
  // Accepts every WebSocket but those of the paths in REFUSALS, and sends back what it gets.
  server.on('upgrade', (asked: IncomingMessage, socket: Duplex) => {
    seen.push(asked);
    socket.on('error', () => socket.destroy());
    const refusal = REFUSALS[asked.url ?? ''];
    if (refusal !== undefined) return void socket.end(refusal);
    const head = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket';
    socket.write(`${head}\r\nSec-WebSocket-Accept: of-the-gateway\r\n\r\n`);
    socket.pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  // A TCP address is never a string.
  const { port } = server.address() as AddressInfo;
  const agentId = randomUUID();
  const secrets = testSecrets();
  const place = { agentId, userId: 'ada', host: 'here', port };
  const places: Readonly<Record<string, AgentPlace>> = {
    'first-0a1b2c3d': place,
    'second-0a1b2c3d': { ...place, agentId: randomUUID(), port: null },
    'third-0a1b2c3d': { ...place, agentId: randomUUID(), port: 1 },
  };
  const listener = await serve([health], {
    settings: {
      ...HTTP_SETTINGS,
      ownNames: new Set([...HTTP_SETTINGS.ownNames, OWN]),
      requestsPerMinute,
    },
    requests,
    otherNames: (shared) =>
      new AgentProxy({
        ...shared,
        domain: 'agents.test',
        scheme: 'https',
        secrets,
        agents: { find: (subdomain) => Promise.resolve(places[subdomain]) },
        gateways: new GatewayConnections('here', farGateway),
        bounds,
      }),
  });
  return {
    listener,
    seen,
    openingPath: () => openingPath(secrets, agentId),
    async close() {
      await listener.close();
      server.closeAllConnections();
      server.close();
    },
  };
}

/** A connection to the listener, and the text that it has received. */
export interface RawConnection {
  readonly socket: Socket;
  received(): string;
  readonly closed: Promise<unknown>;
}

/** Opens a connection and sends lines of a request on it. */
export function sendRaw({ listener }: AgentAddressLab, lines: readonly string[]): RawConnection {
  const socket = connect(listener.port, '127.0.0.1');
  let received = '';
  socket.on('data', (piece: Buffer) => (received += piece.toString('latin1')));
  socket.on('error', () => socket.destroy());
  socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  const closed = new Promise((resolve) => socket.once('close', resolve));
  return { socket, received: () => received, closed };
}

/** Requests a WebSocket. */
export function openWebSocket(
  lab: AgentAddressLab,
  host: string,
  headers: readonly string[] = [],
  path = '/',
): RawConnection {
  const upgrade = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13'];
  return sendRaw(lab, [`GET ${path} HTTP/1.1`, `Host: ${host}`, ...upgrade, ...headers]);
}

export interface Asked {
  readonly host: string;
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: string;
}

/** Sends a request for a host name to the listener. */
export async function ask({ listener }: AgentAddressLab, asked: Asked) {
  const { body, host, headers, method = 'GET', path = '/' } = asked;
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const call = request(
      { port: listener.port, host: '127.0.0.1', method, path, headers: { host, ...headers } },
      resolve,
    );
    call.once('error', reject);
    call.end(body);
  });
  const { headers: answered, statusCode: status } = answer;
  return { status, headers: answered, body: await text(answer) };
}
