import {
  STATUS_CODES,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import { PassThrough, type Duplex, type Readable } from 'node:stream';
import { subdomainIn } from '../../src/agents/address/agent-address.js';
import type {
  AgentPlace,
  AgentsBySubdomain,
} from '../../src/agents/address/agents-by-subdomain.js';
import type {
  GatewayConnections,
  GatewayTarget,
} from '../../src/agents/hosts/gateway-connections.js';
import { GATEWAY_HOST, GATEWAY_ORIGIN } from '../../src/docker/containers/openclaw-config.js';
import { setBounded } from '../../src/lib/bounded-map.js';
import { BytePace, pipePaced } from '../../src/lib/byte-pace.js';
import { describeError } from '../../src/lib/describe-error.js';
import type { Release } from '../../src/lib/fair-limiter.js';
import { QuotaLimiter } from '../../src/lib/quota-limiter.js';
import type { NoteRequest } from '../../src/platform/http/request-seconds.js';
import type { SecretBox } from '../../src/platform/secrets/secret-box.js';
import type { OtherNames, SharedParts } from '../http/other-names.js';
import { whenClosed } from '../http/when-closed.js';
import { isOpening, isOwner, openForOwner } from './owner-browser.js';
import { PassedAnswer } from './passed-answer.js';
import { PassedWebSocket, WEB_SOCKET } from './passed-web-socket.js';
import { hasBody, headersForGateway, lengthOf } from './proxy-headers.js';
import { Refusal } from './refusal.js';

/** Bounds on an agent's address. */
export interface AgentBounds {
  /** Requests in flight and WebSockets, in all, of one agent, and of one client at one agent. */
  readonly connections: number;
  readonly ofAgent: number;
  readonly ofClient: number;
  readonly bytesPerSecond: number;
  /** Milliseconds without a byte after which a connection ends. */
  readonly idleMs: number;
}

const BOUNDS: AgentBounds = {
  connections: 2_000,
  ofAgent: 100,
  ofClient: 50,
  bytesPerSecond: 20 * 1024 * 1024,
  idleMs: 10 * 60_000,
};

/** Milliseconds in which a gateway must accept a WebSocket. */
const HANDSHAKE_MS = 15_000;

/** The name of these addresses, and the routes, in the metrics of requests. */
const LISTENER = 'agents';
const ROUTES = { http: 'http', webSocket: 'websocket' } as const;

/** Maximum number of agents whose paces are remembered; those used last. */
const MAX_PACES = 10_000;

export interface AgentProxyParts extends SharedParts {
  /** `AGENT_DOMAIN` */
  readonly domain: string;
  readonly scheme: 'http' | 'https';
  readonly secrets: Pick<SecretBox, 'digest' | 'digests'>;
  readonly agents: Pick<AgentsBySubdomain, 'find'>;
  readonly gateways: Pick<GatewayConnections, 'close' | 'to'>;
  readonly bounds?: Partial<AgentBounds> | undefined;
}

/** A WebSocket's client, and the status that it got. */
interface Client {
  readonly socket: Duplex;
  readonly head: Buffer;
  status?: number | undefined;
}

/** A request to a running agent. */
interface Admitted {
  readonly place: AgentPlace;
  readonly target: GatewayTarget;
  readonly pace: BytePace;
  readonly release: Release;
}

/** Serves `<subdomain>.<AGENT_DOMAIN>`: passes requests on to the gateway of the agent with this subdomain. */
export class AgentProxy implements OtherNames {
  readonly #parts: AgentProxyParts;
  readonly #bounds: AgentBounds;
  readonly #ofAgents: QuotaLimiter;
  readonly #ofClients: QuotaLimiter;
  readonly #paces = new Map<string, BytePace>();
  readonly #upgraded = new Set<Duplex>();
  readonly #note: NoteRequest | undefined;

  constructor(parts: AgentProxyParts) {
    this.#parts = parts;
    this.#bounds = { ...BOUNDS, ...parts.bounds };
    const { connections, ofAgent, ofClient } = this.#bounds;
    this.#ofAgents = new QuotaLimiter({ total: connections, perOwner: ofAgent });
    this.#ofClients = new QuotaLimiter({ perOwner: ofClient });
    this.#note = parts.requests?.of(LISTENER);
  }

  owns(request: IncomingMessage): boolean {
    return this.#subdomainOf(request) !== undefined && !this.#parts.isOwn(request);
  }

  serve(request: IncomingMessage, response: ServerResponse): void {
    void this.#serve(request, response);
  }

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    void this.#upgrade(request, socket, head);
  }

  close(): void {
    for (const socket of this.#upgraded) socket.destroy();
    void this.#parts.gateways.close();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const started = performance.now();
    whenClosed(response, () => {
      const status = response.writableFinished ? response.statusCode : undefined;
      this.#noteRequest(request, ROUTES.http, status, started);
    });
    try {
      const admitted = await this.#admit(request);
      whenClosed(response, admitted.release);
      if (response.destroyed) return admitted.release();
      if (isOpening(request))
        openForOwner(request, response, { ...this.#parts, ...admitted.place });
      else this.#pass(request, response, admitted);
    } catch (error) {
      this.#refusalOf(error).answer(response);
    }
  }

  async #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const started = performance.now();
    const client: Client = { socket, head };
    this.#upgraded.add(socket);
    socket.once('close', () => {
      this.#upgraded.delete(socket);
      this.#noteRequest(request, ROUTES.webSocket, client.status, started);
    });
    socket.on('error', () => socket.destroy());
    try {
      checkWebSocket(request);
      const admitted = await this.#admit(request);
      socket.once('close', admitted.release);
      if (socket.destroyed) return admitted.release();
      this.#connect(request, client, admitted);
    } catch (error) {
      this.#refuse(client, error);
    }
  }

  /** Opens a WebSocket at the gateway and connects both; an answer without one is passed on. */
  #connect(request: IncomingMessage, client: Client, { pace, place, target }: Admitted): void {
    const { host = '', origin } = request.headers;
    // OpenClaw approves a new device that has the token and seems to be on its machine.
    const isApproved = origin === undefined || isOwner(request, this.#parts.secrets, place.agentId);
    const names = ['Host', isApproved ? GATEWAY_HOST : host, 'Origin', GATEWAY_ORIGIN];
    const { dispatcher, origin: gateway } = target;
    const { head, socket } = client;
    const answer = new PassedWebSocket({
      request,
      head,
      sink: socket,
      pace,
      idleMs: this.#bounds.idleMs,
      noteStatus: (status) => (client.status = status),
      refuse: (error) => this.#refuse(client, error),
    });
    socket.once('close', () => answer.abort());
    dispatcher.dispatch(
      {
        origin: gateway,
        path: request.url ?? '/',
        method: 'GET',
        upgrade: WEB_SOCKET,
        headers: [...names, ...headersForGateway(request)],
        headersTimeout: HANDSHAKE_MS,
      },
      answer,
    );
  }

  /** Admits a request to a running agent within its bounds. @throws Refusal */
  async #admit(request: IncomingMessage): Promise<Admitted> {
    const { addressOf, agents, gateways, guard } = this.#parts;
    const address = addressOf(request);
    const refused = guard(address);
    if (refused) throw Refusal.tooMany(refused);
    checkForm(request);
    const place = await agents.find(this.#subdomainOf(request) ?? '');
    if (!place) throw Refusal.unknown();
    const target = gateways.to(place);
    if (!target) throw Refusal.stopped();
    const release = this.#hold(place.agentId, address);
    return { place, target, pace: this.#paceOf(place.agentId), release };
  }

  /** Reserves a connection of the agent and of the client at this agent. @throws Refusal */
  #hold(agentId: string, address: string): Release {
    const ofAgent = this.#ofAgents.tryTake(agentId);
    const ofClient = ofAgent && this.#ofClients.tryTake(`${agentId} ${address}`);
    if (!ofAgent || !ofClient) {
      ofAgent?.();
      throw Refusal.busy();
    }
    return () => {
      ofAgent();
      ofClient();
    };
  }

  #pass(request: IncomingMessage, response: ServerResponse, { pace, target }: Admitted): void {
    const { host = '' } = request.headers;
    const { idleMs } = this.#bounds;
    const refuse = (error: unknown) => this.#refusalOf(error).answer(response);
    const answer = new PassedAnswer({ sink: response, pace, refuse });
    response.setTimeout(idleMs, () => response.destroy());
    whenClosed(response, () => answer.abort());
    const { dispatcher, origin } = target;
    dispatcher.dispatch(
      {
        origin,
        path: request.url ?? '/',
        method: request.method ?? 'GET',
        headers: [
          'Host',
          host,
          ...originFor(request),
          ...headersForGateway(request),
          ...lengthOf(request),
        ],
        body: hasBody(request) ? pacedBody(request, pace) : null,
      },
      answer,
    );
  }

  #refuse(client: Client, error: unknown): void {
    const refusal = this.#refusalOf(error);
    client.status = refusal.status;
    refusal.answerUpgrade(client.socket);
  }

  /** Notes an ended request. Agents choose their statuses, so that unusual ones count as those of their kind. */
  #noteRequest(
    { method = '' }: IncomingMessage,
    route: string,
    status: number | undefined,
    started: number,
  ): void {
    const isKnown = status === undefined || status in STATUS_CODES;
    const noted = isKnown ? status : Math.floor(status / 100) * 100;
    this.#note?.(method, route, noted, (performance.now() - started) / 1_000);
  }

  #paceOf(agentId: string): BytePace {
    const pace = this.#paces.get(agentId) ?? new BytePace(this.#bounds.bytesPerSecond);
    setBounded(this.#paces, agentId, pace, MAX_PACES);
    return pace;
  }

  #subdomainOf({ headers }: IncomingMessage): string | undefined {
    return subdomainIn(this.#parts.domain, (headers.host ?? '').replace(/:\d*$/, ''));
  }

  #refusalOf(error: unknown): Refusal {
    if (error instanceof Refusal) return error;
    // Agents that start or stop refuse connections, so that this is no fault of the platform.
    this.#parts.log.debug({ error: describeError(error) }, 'passing a request to an agent failed');
    return Refusal.unreachable();
  }
}

/**
 * Refuses a WebSocket of a page of another site: browsers send one's cookies from any page. Programs send no
 * `Origin`. @throws Refusal
 */
function checkWebSocket({ headers, method }: IncomingMessage): void {
  if (method !== 'GET' || headers.upgrade?.toLowerCase() !== WEB_SOCKET) throw Refusal.malformed();
  if (headers.origin !== undefined && !isSameOrigin(headers)) throw Refusal.foreign();
}

/** Returns a request's origin as the gateway expects it; the gateway refuses origins of other sites. */
function originFor({ headers }: IncomingMessage): string[] {
  const { origin } = headers;
  if (origin === undefined) return [];
  return ['Origin', isSameOrigin(headers) ? GATEWAY_ORIGIN : origin];
}

function isSameOrigin({ host = '', origin = '' }: IncomingHttpHeaders): boolean {
  return URL.canParse(origin) && new URL(origin).host === host.toLowerCase();
}

/** Returns a request's body at the pace of its agent. */
function pacedBody(request: IncomingMessage, pace: BytePace): Readable {
  const body = new PassThrough();
  pipePaced(request, body, pace);
  return body;
}

/** Refuses what two servers could understand differently. @throws Refusal */
function checkForm({ method, rawHeaders, url = '' }: IncomingMessage): void {
  const hosts = rawHeaders.filter((each, at) => at % 2 === 0 && each.toLowerCase() === 'host');
  if (hosts.length > 1 || !url.startsWith('/') || method === 'TRACE') throw Refusal.malformed();
  if (isAdministration(url)) throw Refusal.hidden();
}

/** OpenClaw's plugin for programs on its own machine, which a user's configuration can switch on. */
const ADMINISTRATION = '/api/v1/admin';

/** Reports whether a path, in any spelling, is one of that plugin. */
function isAdministration(url: string): boolean {
  // Every spelling has the word or an escape, and most paths have neither.
  if (!/admin|%/i.test(url)) return false;
  let path = url.split(/[?#]/, 1)[0] ?? '';
  try {
    // Twice: a server may decode once more than it should.
    path = decodeURIComponent(decodeURIComponent(path));
  } catch {
    return true;
  }
  const { pathname } = new URL(path.replaceAll('\\', '/').replaceAll(/\/+/g, '/'), 'http://agent');
  return pathname.toLowerCase().startsWith(ADMINISTRATION);
}
