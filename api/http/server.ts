import http from 'node:http';
import { BlockList, type AddressInfo, type Socket } from 'node:net';
import type { Duplex, Readable } from 'node:stream';
import type { Logger } from 'pino';
import { addNetwork } from '../../src/lib/add-network.js';
import { inUrl } from '../../src/platform/http/own-hosts.js';
import { inNetworks, plainAddress } from './client-address.js';
import type { OtherNames } from './other-names.js';
import { whenClosed } from './when-closed.js';

export interface Listening {
  readonly url: string;
  readonly port: number;
  /** Stops accepting, waits for requests in flight (10 s; streams 2 s), then destroys the rest. */
  close(): Promise<void>;
}

/** An address to listen on; `variable` is the setting of its port. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
  readonly variable?: string | undefined;
}

/** A failure to start a listener; the message gives the reason in one sentence. */
export class ListenError extends Error {
  override readonly name = 'ListenError';

  /** @param code the system's error code, for example `EADDRINUSE`. @param variable the setting of the port. */
  constructor(
    readonly code: string,
    readonly host: string,
    readonly port: number,
    variable: string | undefined,
    options?: ErrorOptions,
  ) {
    const reason = REASONS[code] ?? code;
    const todo = variable === undefined ? '' : `; set ${variable} to another port`;
    super(`Cannot listen on ${host}:${port}: ${reason}${todo}`, options);
  }
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'the port is used by another program',
  EACCES: 'this port needs more rights',
  EADDRNOTAVAIL: 'this machine does not have that address',
  ENOTFOUND: 'the host name has no address',
};

const CLOSE_MS = 10_000;
const STREAM_GRACE_MS = 2_000;
const IDLE_SWEEP_MS = 100;

/** Limits on a listener's clients. */
export interface Bounds {
  /** Milliseconds to receive the head of a request, from the end of the previous one. */
  readonly headersMs: number;
  /** Milliseconds to receive a whole request. */
  readonly requestMs: number;
  /** Minimum pace of a body: `paceBytes` must arrive within `paceMs` milliseconds. */
  readonly paceMs: number;
  readonly paceBytes: number;
  /** Milliseconds and bytes allowed for the unread rest of a body after the answer is sent. */
  readonly unwantedMs: number;
  readonly unwantedBytes: number;
  /** Milliseconds that a client may go without reading any of its answer. */
  readonly stalledMs: number;
  /** Maximum number of concurrent connections. */
  readonly connections: number;
  readonly connectionsOfAddress: number;
}

const BOUNDS: Bounds = {
  headersMs: 10_000,
  requestMs: 60_000,
  paceMs: 5_000,
  paceBytes: 20_000,
  unwantedMs: 5_000,
  unwantedBytes: 4 * 1024 * 1024,
  stalledMs: 120_000,
  connections: 4_096,
  connectionsOfAddress: 512,
};

/** Milliseconds between checks for timeouts. */
const CHECK_MS = 1_000;
const UNWANTED_CHECK_MS = 50;

interface Options {
  readonly refuseFrom: readonly string[];
  /** Addresses shared by many clients, exempt from the limit for a single address. */
  readonly trustedProxies: BlockList;
  readonly bounds?: Partial<Bounds> | undefined;
  readonly log: Logger;
  readonly onClosed: () => Promise<void>;
}

/** The socket side of a listener: start, refused networks, and graceful shutdown. */
export class Server {
  readonly bounds: Bounds;
  readonly #refused = new BlockList();
  readonly #streams = new Set<Readable>();
  /** Requests in flight, by connection. */
  readonly #busy = new Map<Socket, number>();
  /** Number of connections, by address. */
  readonly #ofAddress = new Map<string, number>();
  #stopping = false;
  readonly #options: Options;

  constructor(options: Options) {
    this.#options = options;
    this.bounds = { ...BOUNDS, ...options.bounds };
    for (const network of options.refuseFrom) addNetwork(this.#refused, network);
  }

  /** Reports whether close was called; answers then request their connections to end. */
  get closing(): boolean {
    return this.#stopping;
  }

  /** Disconnects a client that stops reading its answer for too long. */
  watch(response: http.ServerResponse): void {
    response.setTimeout(this.bounds.stalledMs, () => response.destroy());
  }

  /** Registers a stream in flight; an endless stream would otherwise block closing. */
  track(stream: Readable): void {
    this.#streams.add(stream);
    stream.once('close', () => this.#streams.delete(stream));
  }

  /** @param others serves requests for names that it owns, in place of `handle`. */
  async listen(
    handle: http.RequestListener,
    { host, port, variable }: ListenAddress,
    others?: OtherNames,
  ): Promise<Listening> {
    const { headersMs, requestMs } = this.bounds;
    const options = {
      headersTimeout: headersMs,
      requestTimeout: requestMs,
      connectionsCheckingInterval: Math.min(CHECK_MS, headersMs),
    };
    const server = http.createServer(options, (request, response) => {
      if (others?.owns(request)) others.serve(request, response);
      else handle(request, response);
    });
    server.on('connection', (socket: Socket) => this.#admit(socket));
    if (others) server.on('upgrade', (...upgrade) => this.#upgrade(server, others, ...upgrade));
    server.on('request', (request: http.IncomingMessage, response: http.ServerResponse) => {
      const { socket } = request;
      this.#busy.set(socket, (this.#busy.get(socket) ?? 0) + 1);
      response.once('finish', () => this.#discard(request));
      whenClosed(response, () => {
        const left = (this.#busy.get(socket) ?? 1) - 1;
        if (!socket.destroyed) this.#busy.set(socket, left);
      });
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', (error: NodeJS.ErrnoException) => {
        const code = error.code ?? error.name;
        reject(new ListenError(code, host, port, variable, { cause: error }));
      });
      server.listen(port, host, resolve);
    });
    server.removeAllListeners('error');
    server.on('error', (error) => this.#options.log.error({ reason: error.message }, 'server'));

    const bound = addressOf(server);
    return {
      url: `http://${hostInUrl(host)}:${bound.port}`,
      port: bound.port,
      close: () => this.#close(server, others),
    };
  }

  /** Admits a connection within its address's limit; at the overall limit the oldest idle one is dropped. */
  #admit(socket: Socket): void {
    const address = plainAddress(socket.remoteAddress ?? '');
    if (inNetworks(this.#refused, address)) return void socket.destroy();
    const ofAddress = this.#ofAddress.get(address) ?? 0;
    const isProxy = inNetworks(this.#options.trustedProxies, address);
    if (ofAddress >= this.bounds.connectionsOfAddress && !isProxy) return void socket.destroy();
    if (this.#busy.size >= this.bounds.connections && !this.#dropOneIdle())
      return void socket.destroy();
    this.#ofAddress.set(address, ofAddress + 1);
    this.#busy.set(socket, 0);
    socket.once('close', () => {
      this.#busy.delete(socket);
      const left = (this.#ofAddress.get(address) ?? 1) - 1;
      if (left > 0) this.#ofAddress.set(address, left);
      else this.#ofAddress.delete(address);
    });
  }

  /** Drops the idle connection that has been open longest. */
  #dropOneIdle(): boolean {
    for (const [socket, requests] of this.#busy) {
      if (requests > 0) continue;
      this.#busy.delete(socket);
      socket.destroy();
      return true;
    }
    return false;
  }

  /** Passes a connection to a name that supports upgrades, or serves the request without an upgrade. */
  #upgrade(
    server: http.Server,
    others: OtherNames,
    request: http.IncomingMessage,
    socket: Duplex,
    head: Buffer,
  ): void {
    const { socket: connection } = request;
    if (others.owns(request)) {
      // Busy until its end, so that it does not count as an idle connection.
      this.#busy.set(connection, (this.#busy.get(connection) ?? 0) + 1);
      return others.upgrade(request, socket, head);
    }
    const response = new http.ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(connection);
    response.once('finish', () => socket.end());
    const { 'content-length': length, 'transfer-encoding': encoding } = request.headers;
    // Node reads no body behind a request to upgrade.
    if (encoding !== undefined || Number(length ?? 0) > 0) response.writeHead(400).end();
    else server.emit('request', request, response);
  }

  /** Discards a body's rest, so that its sender can read the answer; disconnects senders over the limits. */
  #discard(request: http.IncomingMessage): void {
    if (request.complete) return;
    const { socket } = request;
    const { unwantedBytes, unwantedMs } = this.bounds;
    const bytesBefore = socket.bytesRead;
    const since = performance.now();
    // Discarded bytes only show in the socket's counters.
    const checking = setInterval(() => {
      const tooMany = socket.bytesRead - bytesBefore > unwantedBytes;
      if (tooMany || performance.now() - since > unwantedMs) socket.destroy();
    }, UNWANTED_CHECK_MS);
    request.once('close', () => clearInterval(checking));
  }

  async #close(server: http.Server, others: OtherNames | undefined): Promise<void> {
    this.#stopping = true;
    const endStreams = setTimeout(() => {
      others?.close();
      for (const stream of this.#streams) stream.destroy();
    }, STREAM_GRACE_MS);
    // Idle connections, used or unused, would block closing.
    const endIdle = setInterval(() => this.#dropIdle(), IDLE_SWEEP_MS);
    const cutRest = setTimeout(() => server.closeAllConnections(), CLOSE_MS);
    await new Promise<void>((resolve) => {
      // Fails only if the server is closed already, which is fine.
      server.close(() => resolve());
    });
    clearInterval(endIdle);
    clearTimeout(endStreams);
    clearTimeout(cutRest);
    others?.close();
    await this.#options.onClosed();
  }

  #dropIdle(): void {
    for (const [socket, requests] of this.#busy) if (requests === 0) socket.destroy();
  }
}

function addressOf(server: http.Server): AddressInfo {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new TypeError('not a TCP server');
  return address;
}

/** Returns a host that clients can connect to: loopback in place of an all-interfaces address. */
function hostInUrl(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  return inUrl(host === '::' ? '::1' : host);
}
