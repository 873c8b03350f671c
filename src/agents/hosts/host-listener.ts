import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import https from 'node:https';
import { BlockList, isIPv6, type AddressInfo } from 'node:net';
import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Release } from '../../lib/fair-limiter.js';
import type { NoteRequest } from '../../platform/http/request-seconds.js';
import { isOwnHost } from '../../platform/http/own-hosts.js';
import { ConflictError } from '../../lib/errors.js';
import { tryParseJson } from '../../lib/json.js';
import { QuotaLimiter } from '../../lib/quota-limiter.js';
import { readTextUpTo } from '../../lib/read-beginning.js';
import type { SecretBox } from '../../platform/secrets/secret-box.js';
import type { HostAccess } from './host-access.js';
import type { HostTls } from './settings.js';
import { isForBody, readHostToken, UsedTokens } from './host-token.js';
import {
  ANSWER_TYPE,
  CALLS_PATH,
  failureOf,
  GATEWAY_CALL_HEADER,
  GATEWAY_PATH,
  GATEWAY_PROTOCOL,
  gatewayCall,
  hostCall,
  MAX_CALL_BYTES,
  PULSE_MS,
  type HostCall,
} from './host-wire.js';

/** Maximum number of concurrent calls, mostly followed logs, and one owner's share. */
const MAX_CALLS = 400;
const PART_OF_OWNER = 1 / 4;
const MAX_CONNECTIONS = 1_000;

/** Maximum number of connections to gateways, and those of one agent. */
const MAX_GATEWAYS = 500;
const MAX_OF_AGENT = 100;

/** Milliseconds for a request to arrive, and for a reader to accept sent data. */
const REQUEST_TIMEOUT_MS = 15_000;
const STALLED_MS = 60_000;

export class HostListenError extends Error {
  override readonly name = 'HostListenError';

  constructor(address: string, port: number, cause: NodeJS.ErrnoException) {
    super(
      `The host cannot be served at ${address}:${port} (${cause.code ?? cause.message}): set ` +
        'HOST_LISTEN to an address of this machine and a free port',
      { cause },
    );
  }
}

export interface HostListenerParts {
  readonly id: string;
  readonly host: HostAccess;
  readonly secrets: SecretBox;
  /** The accepted names in a request's `Host` header. */
  readonly names: ReadonlySet<string>;
  /** Connections from the agents' network are dropped. */
  readonly agentsNetwork: string;
  /** Without a certificate the listener speaks plain HTTP. */
  readonly tls?: HostTls | undefined;
  readonly log: Logger;
  /** Notes the duration of each call. */
  readonly noteRequest?: NoteRequest | undefined;
  readonly pulseMs?: number;
  readonly stalledMs?: number;
  readonly maxCalls?: number;
}

/**
 * A server for other machines' API processes: calls to one host's agents, without access to Docker itself.
 */
export class HostListener {
  readonly #parts: HostListenerParts;
  readonly #server: http.Server;
  readonly #calls: QuotaLimiter;
  readonly #gateways = new QuotaLimiter({ total: MAX_GATEWAYS, perOwner: MAX_OF_AGENT });
  readonly #tunnels = new Set<Duplex>();
  readonly #used = new UsedTokens();

  constructor(parts: HostListenerParts) {
    this.#parts = parts;
    const total = parts.maxCalls ?? MAX_CALLS;
    this.#calls = new QuotaLimiter({ total, perOwner: total * PART_OF_OWNER });
    const [network = '', bits] = parts.agentsNetwork.split('/');
    const agents = new BlockList();
    agents.addSubnet(network, Number(bits), 'ipv4');
    const timeouts = { requestTimeout: REQUEST_TIMEOUT_MS, headersTimeout: REQUEST_TIMEOUT_MS };
    const { tls } = parts;
    const serve: http.RequestListener = (request, response) => void this.#serve(request, response);
    this.#server = tls
      ? https.createServer({ ...timeouts, ...tls }, serve)
      : http.createServer(timeouts, serve);
    this.#server.on('upgrade', (request: IncomingMessage, socket: Duplex) => {
      void this.#connect(request, socket);
    });
    this.#server.maxConnections = MAX_CONNECTIONS;
    this.#server.on('connection', (socket) => {
      const address = (socket.remoteAddress ?? '').replace(/^::ffff:/, '');
      if (!isIPv6(address) && agents.check(address)) socket.destroy();
    });
  }

  /** Listens; port 0 picks a free one, which is returned. @throws HostListenError */
  async listen(address: string, port: number): Promise<number> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', (error) => reject(new HostListenError(address, port, error)));
      this.#server.listen(port, address, resolve);
    });
    this.#server.removeAllListeners('error');
    this.#server.on('error', (error) => this.#parts.log.error({ err: error }, 'host listener'));
    // The server listens on TCP, so its address is never a path.
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    for (const tunnel of this.#tunnels) tunnel.destroy();
    await closed;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { id, log, secrets } = this.#parts;
    const ending = new AbortController();
    const started = performance.now();
    response.once('close', () => {
      ending.abort();
      const route = request.url === CALLS_PATH ? CALLS_PATH : undefined;
      const status = response.writableFinished ? response.statusCode : undefined;
      const seconds = (performance.now() - started) / 1000;
      this.#parts.noteRequest?.(request.method ?? '', route, status, seconds);
    });
    let release: Release | undefined;
    try {
      if (!isOwnHost(request, this.#parts.names)) return refuse(response, 421);
      if (request.method !== 'POST' || request.url !== CALLS_PATH) return refuse(response, 404);
      const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
      const claim = readHostToken(secrets, id, token);
      if (!claim) return refuse(response, 401);
      if (this.#used.isFull()) return refuse(response, 503);
      const body = await readTextUpTo(request, MAX_CALL_BYTES);
      if (!isForBody(claim, body) || !this.#used.use(claim)) return refuse(response, 401);
      const call = hostCall.safeParse(tryParseJson(body)).data;
      if (!call) return refuse(response, 400);
      release = this.#calls.tryTake(ownerOf(call));
      if (!release) return refuse(response, 503);
      response.writeHead(200, {
        'content-type': ANSWER_TYPE,
        'cache-control': 'no-store',
      });
      response.flushHeaders();
      response.setTimeout(this.#parts.stalledMs ?? STALLED_MS, () => response.destroy());
      await this.#answer(call, response, ending.signal);
      response.end();
    } catch (error) {
      if (!ending.signal.aborted) log.warn({ err: error }, 'a call to this host was aborted');
      response.destroy();
    } finally {
      release?.();
    }
  }

  /** Connects a caller to an agent's gateway, byte for byte. */
  async #connect(request: IncomingMessage, socket: Duplex): Promise<void> {
    const { id, log, secrets } = this.#parts;
    socket.on('error', () => socket.destroy());
    const refuseWith = (status: number) =>
      void socket.end(`HTTP/1.1 ${status} \r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
    try {
      const { authorization = '', [GATEWAY_CALL_HEADER]: body, upgrade } = request.headers;
      if (!isOwnHost(request, this.#parts.names)) return refuseWith(421);
      if (request.url !== GATEWAY_PATH || upgrade !== GATEWAY_PROTOCOL) return refuseWith(404);
      const token = /^Bearer (.+)$/.exec(authorization)?.[1] ?? '';
      const claim = readHostToken(secrets, id, token);
      if (!claim || typeof body !== 'string' || !isForBody(claim, body)) return refuseWith(401);
      if (this.#used.isFull()) return refuseWith(503);
      if (!this.#used.use(claim)) return refuseWith(401);
      const call = gatewayCall.safeParse(tryParseJson(body)).data;
      if (!call) return refuseWith(400);
      const release = this.#gateways.tryTake(call.agentId);
      if (!release) return refuseWith(503);
      socket.once('close', release);
      this.#tunnels.add(socket);
      socket.once('close', () => this.#tunnels.delete(socket));
      if (socket.destroyed) return release();
      const gateway = await this.#parts.host.connect({ ...call, host: id });
      gateway.on('error', () => gateway.destroy());
      gateway.once('close', () => socket.destroy());
      socket.once('close', () => gateway.destroy());
      if (socket.destroyed) return void gateway.destroy();
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: ${GATEWAY_PROTOCOL}\r\n\r\n`,
      );
      socket.pipe(gateway);
      gateway.pipe(socket);
    } catch (error) {
      log.debug({ err: error }, 'a connection to a gateway failed');
      refuseWith(error instanceof ConflictError ? 409 : 502);
    }
  }

  async #answer(call: HostCall, response: ServerResponse, signal: AbortSignal): Promise<void> {
    const send = async (line: unknown) => {
      if (response.write(`${JSON.stringify(line)}\n`)) return;
      await once(response, 'drain', { signal });
    };
    try {
      const items = withPulses(this.#items(call, signal), this.#parts.pulseMs ?? PULSE_MS, signal);
      for await (const item of items) await send(item === PULSE ? { pulse: true } : { item });
      await send({ end: true });
    } catch (error) {
      if (signal.aborted) throw error;
      const failure = failureOf(error);
      if (failure.kind === 'fault')
        this.#parts.log.error({ err: error }, 'a call to this host failed');
      await send({ failure });
    }
  }

  async *#items(call: HostCall, signal: AbortSignal): AsyncGenerator<unknown> {
    const { host, id } = this.#parts;
    switch (call.call) {
      case 'ask': {
        const { agentId, userId } = call;
        yield* host.ask({ agentId, userId, host: id }, call, signal);
        break;
      }
      case 'logs':
        yield* host.logs(call.agentId, { ...call, signal });
        break;
      case 'stats':
        yield await host.stats(call.agentId);
        break;
      case 'failures': {
        const { agentId, userId } = call;
        yield await host.failures({ agentId, userId, host: id }, signal);
        break;
      }
      case 'instances':
        yield* await host.instances(call);
        break;
      case 'browse': {
        const { agentId, asked, userId } = call;
        yield* host.browse({ agentId, userId, host: id }, asked, signal);
      }
    }
  }
}

function ownerOf(call: HostCall): string {
  if ('userId' in call && call.userId !== undefined) return `user:${call.userId}`;
  return 'agentId' in call ? `agent:${call.agentId}` : 'platform';
}

function refuse(response: ServerResponse, status: number): void {
  response.writeHead(status, { connection: 'close' }).end();
}

const PULSE = Symbol('pulse');

/** Yields the items, and a pulse after every interval without an item. */
async function* withPulses<T>(
  items: AsyncGenerator<T>,
  everyMs: number,
  signal: AbortSignal,
): AsyncGenerator<T | typeof PULSE> {
  try {
    for (let next = items.next(); ;) {
      const waiting = new AbortController();
      const pulse = delay(everyMs, undefined, { signal: waiting.signal }).catch(() => undefined);
      const received = await Promise.race([next, pulse]).finally(() => waiting.abort());
      signal.throwIfAborted();
      if (received === undefined) {
        yield PULSE;
      } else if (received.done === true) {
        return;
      } else {
        yield received.value;
        next = items.next();
      }
    }
  } finally {
    await items.return(undefined);
  }
}
