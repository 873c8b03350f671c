// A simulated Docker host without incidents: it answers the watchdog's Engine API requests, and each
// gateway's over HTTP on a loopback port. A separate program: `node quiet-host.js <ports>`, which sends
// its address and ports to its parent, receives the agents, and counts requests.
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { containerName, LABEL } from '../../src/docker/containers/container-spec.js';

/** Ports below the ephemeral range of operating systems. */
const FIRST_PORT = 2_000;
const LAST_PORT = 32_000;

export interface QuietAgent {
  readonly id: string;
  readonly userId: string;
  readonly port: number;
}

/** A message of the parent: the agents that run from then on, or a request for the counts. */
export interface QuietHostOrder {
  readonly installation: string;
  readonly agents: readonly QuietAgent[];
}

export interface QuietHostCounts {
  readonly probes: number;
  readonly inspections: number;
}

const startedAt = new Date(Date.now() - 3_600_000).toISOString();
const agents = new Map<string, QuietAgent>();
let installation = '';
let probes = 0;
let inspections = 0;

const engine = http.createServer({ keepAliveTimeout: 60_000 }, answerAsEngine);
const gateway = http.createServer(answerAsGateway);
const dockerHost = `tcp://127.0.0.1:${await listen(engine, 0)}`;
const ports = await listenOnMany(Number(process.argv[2]));

process.on('message', (order: QuietHostOrder | 'count') => {
  if (order === 'count') {
    process.send?.({ probes, inspections } satisfies QuietHostCounts);
    return;
  }
  ({ installation } = order);
  for (const agent of order.agents) agents.set(containerName(agent.id), agent);
  process.send?.('known');
});
process.on('disconnect', () => process.exit());
process.send?.({ dockerHost, ports });

/** The answer to every message. */
const ANSWER = `data: ${JSON.stringify({ choices: [{ delta: { content: 'It is done' } }] })}\n\ndata: [DONE]\n\n`;

function answerAsGateway(request: IncomingMessage, response: ServerResponse): void {
  const { url } = request;
  if (url === '/v1/chat/completions') {
    request.resume().on('end', () => {
      response.setHeader('content-type', 'text/event-stream').end(ANSWER);
    });
    return;
  }
  probes++;
  const body = url === '/readyz' ? { ready: true } : { ok: true, status: 'live' };
  response.setHeader('content-type', 'application/json').end(JSON.stringify(body));
}

function answerAsEngine(request: IncomingMessage, response: ServerResponse): void {
  const { pathname } = new URL(request.url ?? '/', dockerHost);
  const path = pathname.replace(/^\/v[\d.]+\//, '/');
  const json = (body: unknown, status = 200) =>
    response
      .writeHead(status, { 'content-type': 'application/json' })
      .end(request.method === 'HEAD' ? undefined : JSON.stringify(body));
  const inspected = /^\/containers\/([^/]+)\/json$/.exec(path)?.[1];
  if (path === '/_ping') {
    response.writeHead(200, { 'content-type': 'text/plain', 'api-version': '1.47' }).end('OK');
  } else if (path === '/version') {
    json({ Version: '27.0.0', ApiVersion: '1.47', Os: 'linux' });
  } else if (path === '/info') {
    json({ ID: 'quiet', DockerRootDir: '/var/lib/quiet', MemTotal: 2 ** 40 });
  } else if (path === '/events') {
    response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders();
  } else if (path === '/containers/json') {
    json([...agents.values()].map(listed));
  } else if (inspected !== undefined) {
    inspections++;
    const agent = agents.get(inspected);
    if (agent) json(inspect(agent));
    else json({ message: `No such container: ${inspected}` }, 404);
  } else if (path === '/networks') {
    json([]);
  } else if (path === '/volumes') {
    json({ Volumes: [], Warnings: null });
  } else if (path === '/networks/bridge') {
    json({ Name: 'bridge', IPAM: { Config: [{ Subnet: '127.0.0.0/8', Gateway: '127.0.0.1' }] } });
  } else {
    json({ message: 'page not found' }, 404);
  }
}

function labelsOf({ id, userId, port }: QuietAgent): Record<string, string> {
  return {
    [LABEL.agent]: id,
    [LABEL.owner]: userId,
    [LABEL.installation]: installation,
    [LABEL.port]: String(port),
  };
}

function listed(agent: QuietAgent) {
  return {
    Id: agent.id.replaceAll('-', '').padEnd(64, '0'),
    Names: [`/${containerName(agent.id)}`],
    Image: 'quiet',
    Created: Math.floor(Date.parse(startedAt) / 1_000),
    Labels: labelsOf(agent),
    State: 'running',
  };
}

function inspect(agent: QuietAgent) {
  return {
    Id: agent.id.replaceAll('-', '').padEnd(64, '0'),
    Name: `/${containerName(agent.id)}`,
    State: {
      Status: 'running',
      Running: true,
      Paused: false,
      Restarting: false,
      OOMKilled: false,
      Dead: false,
      Pid: 1,
      ExitCode: 0,
      Error: '',
      StartedAt: startedAt,
      FinishedAt: '0001-01-01T00:00:00Z',
    },
    Config: { Image: 'quiet', Labels: labelsOf(agent) },
    NetworkSettings: { Networks: {} },
  };
}

/** Opens the gateways' listeners, which forward all connections to one server. */
async function listenOnMany(count: number): Promise<number[]> {
  const found: number[] = [];
  for (let port = FIRST_PORT; found.length < count; port++) {
    if (port > LAST_PORT) throw new Error(`Only ${found.length} of ${count} ports are free`);
    try {
      const forwarding = net.createServer((socket) => gateway.emit('connection', socket));
      found.push(await listen(forwarding, port));
    } catch {
      // The port is in use: try the next.
    }
  }
  return found;
}

function listen(server: net.Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host: '127.0.0.1', port, backlog: 64 }, () => {
      resolve((server.address() as AddressInfo).port); // TCP: never a string
    });
  });
}
