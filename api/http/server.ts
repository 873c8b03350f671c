import http from 'node:http';
import { BlockList, isIPv6, type AddressInfo, type Socket } from 'node:net';
import type { Readable } from 'node:stream';
import type { Logger } from 'pino';
import { inNetworks, plainAddress } from './client-address.js';
import { whenClosed } from './when-closed.js';

export interface Listening {
  readonly url: string;
  readonly port: number;
  /** Stops accepting, lets what is under way end (at most 10 s; streams 2 s), then cuts the rest. */
  close(): Promise<void>;
}

/** A listener could not start; the message says why in one sentence. */
export class ListenError extends Error {
  /** @param code the system's, such as `EADDRINUSE`. */
  constructor(
    readonly code: string,
    readonly host: string,
    readonly port: number,
    options?: ErrorOptions,
  ) {
    super(`Cannot listen on ${host}:${port}: ${REASONS[code] ?? code}`, options);
    this.name = 'ListenError';
  }
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'the port is taken by another program',
  EACCES: 'this port needs more rights',
  EADDRNOTAVAIL: 'this machine does not have that address',
  ENOTFOUND: 'that name has no address',
};

const CLOSE_MS = 10_000;
const STREAM_GRACE_MS = 2_000;
const IDLE_SWEEP_MS = 100;

/** What a listener puts up with. */
export interface Bounds {
  /** Milliseconds for the head of a request, from the end of the one before. */
  readonly headersMs: number;
  /** Milliseconds for all of a request. */
  readonly requestMs: number;
  /** Milliseconds in which so many bytes of a body have to come. */
  readonly paceMs: number;
  readonly paceBytes: number;
  /** Bytes of bodies in memory, of all requests under way and of those of one owner. */
  readonly bodiesBytes: number;
  readonly bodiesBytesOfOwner: number;
  /** Milliseconds for the rest of a body that nobody wants, once its answer is out, and its bytes. */
  readonly unwantedMs: number;
  readonly unwantedBytes: number;
  /** Milliseconds for a client to take anything of its answer. */
  readonly stalledMs: number;
  /** Connections at a time. */
  readonly connections: number;
  readonly connectionsOfAddress: number;
}

const BOUNDS: Bounds = {
  headersMs: 10_000,
  requestMs: 60_000,
  paceMs: 5_000,
  paceBytes: 20_000,
  bodiesBytes: 256 * 1024 * 1024,
  bodiesBytesOfOwner: 64 * 1024 * 1024,
  unwantedMs: 5_000,
  unwantedBytes: 4 * 1024 * 1024,
  stalledMs: 120_000,
  connections: 4_096,
  connectionsOfAddress: 512,
};

/** Milliseconds between two looks at who has taken too long. */
const CHECK_MS = 1_000;
const UNWANTED_CHECK_MS = 50;

interface Options {
  readonly refuseFrom: readonly string[];
  /** Behind whose addresses are many clients. */
  readonly trustedProxies: BlockList;
  readonly bounds?: Partial<Bounds> | undefined;
  readonly log: Logger;
  readonly onClosed: () => Promise<void>;
}

/** The socket side of a listener: starting, refusing networks, and an orderly end. */
export class Server {
  readonly bounds: Bounds;
  readonly #refused = new BlockList();
  readonly #streams = new Set<Readable>();
  /** Requests under way on each connection. */
  readonly #busy = new Map<Socket, number>();
  /** Connections of each address. */
  readonly #ofAddress = new Map<string, number>();
  #stopping = false;
  readonly #options: Options;

  constructor(options: Options) {
    this.#options = options;
    this.bounds = { ...BOUNDS, ...options.bounds };
    for (const network of options.refuseFrom) {
      const [address = '', bits] = network.split('/');
      const family = isIPv6(address) ? 'ipv6' : 'ipv4';
      this.#refused.addSubnet(address, Number(bits ?? (family === 'ipv6' ? 128 : 32)), family);
    }
  }

  /** True once close was called: answers then ask for their connection to end. */
  get closing(): boolean {
    return this.#stopping;
  }

  /** Cuts off a client that takes nothing of its answer for too long. */
  watch(response: http.ServerResponse): void {
    response.setTimeout(this.bounds.stalledMs, () => response.destroy());
  }

  /** A stream that is being sent; one without an end would otherwise hold up closing. */
  track(stream: Readable): void {
    this.#streams.add(stream);
    stream.once('close', () => this.#streams.delete(stream));
  }

  async listen(handle: http.RequestListener, host: string, port: number): Promise<Listening> {
    const { headersMs, requestMs } = this.bounds;
    const options = {
      headersTimeout: headersMs,
      requestTimeout: requestMs,
      connectionsCheckingInterval: Math.min(CHECK_MS, headersMs),
    };
    const server = http.createServer(options, handle);
    server.on('connection', (socket: Socket) => this.#admit(socket));
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
        reject(new ListenError(error.code ?? error.name, host, port, { cause: error }));
      });
      server.listen(port, host, resolve);
    });
    server.removeAllListeners('error');
    server.on('error', (error) => this.#options.log.error({ reason: error.message }, 'server'));

    const bound = addressOf(server);
    return {
      url: `http://${hostInUrl(host)}:${bound.port}`,
      port: bound.port,
      close: () => this.#close(server),
    };
  }

  /**
   * Lets a connection in, of an address as many as it may have. When there are too many in all, one
   * on which nothing is asked makes room.
   */
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

  /** The one that has been open for longest. */
  #dropOneIdle(): boolean {
    for (const [socket, requests] of this.#busy) {
      if (requests > 0) continue;
      this.#busy.delete(socket);
      socket.destroy();
      return true;
    }
    return false;
  }

  /**
   * What still comes of a body after its answer is thrown away, so that the sender gets to read the
   * answer; whoever does not come to an end is cut off.
   */
  #discard(request: http.IncomingMessage): void {
    if (request.complete) return;
    const { socket } = request;
    const { unwantedBytes, unwantedMs } = this.bounds;
    const bytesBefore = socket.bytesRead;
    const since = performance.now();
    // What comes is nowhere to be seen but in the socket's figures.
    const looking = setInterval(() => {
      const tooMany = socket.bytesRead - bytesBefore > unwantedBytes;
      if (tooMany || performance.now() - since > unwantedMs) socket.destroy();
    }, UNWANTED_CHECK_MS);
    request.once('close', () => clearInterval(looking));
  }

  async #close(server: http.Server): Promise<void> {
    this.#stopping = true;
    const endStreams = setTimeout(() => {
      for (const stream of this.#streams) stream.destroy();
    }, STREAM_GRACE_MS);
    // Connections that idle after their last request, or never sent one, would hold up closing.
    const endIdle = setInterval(() => this.#dropIdle(), IDLE_SWEEP_MS);
    const cutRest = setTimeout(() => server.closeAllConnections(), CLOSE_MS);
    await new Promise<void>((resolve) => {
      // It fails only when the server is closed already, which is what is wanted.
      server.close(() => resolve());
    });
    clearInterval(endIdle);
    clearTimeout(endStreams);
    clearTimeout(cutRest);
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

/** Every-address hosts cannot be called; loopback reaches them. */
function hostInUrl(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return isIPv6(host) ? `[${host}]` : host;
}
