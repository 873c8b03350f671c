import http from 'node:http';
import { BlockList, isIPv6, type AddressInfo, type Socket } from 'node:net';
import type { Readable } from 'node:stream';
import type { Logger } from 'pino';
import { inNetworks, plainAddress } from './client-address.js';

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
/** How long a client may take to send its request: bounds slow and endless bodies. */
const REQUEST_TIMEOUT_MS = 60_000;

interface Options {
  readonly refuseFrom: readonly string[];
  readonly log: Logger;
  readonly onClosed: () => Promise<void>;
}

/** The socket side of a listener: starting, refusing networks, and an orderly end. */
export class Server {
  readonly #refused = new BlockList();
  readonly #streams = new Set<Readable>();
  /** Requests under way on each connection. */
  readonly #busy = new Map<Socket, number>();
  #stopping = false;
  readonly #options: Options;

  constructor(options: Options) {
    this.#options = options;
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

  /** A stream that is being sent; one without an end would otherwise hold up closing. */
  track(stream: Readable): void {
    this.#streams.add(stream);
    stream.once('close', () => this.#streams.delete(stream));
  }

  async listen(handle: http.RequestListener, host: string, port: number): Promise<Listening> {
    const server = http.createServer({ requestTimeout: REQUEST_TIMEOUT_MS }, handle);
    server.on('connection', (socket: Socket) => {
      const address = plainAddress(socket.remoteAddress ?? '');
      if (inNetworks(this.#refused, address)) return socket.destroy();
      this.#busy.set(socket, 0);
      socket.once('close', () => this.#busy.delete(socket));
    });
    server.on('request', ({ socket }: http.IncomingMessage, response: http.ServerResponse) => {
      this.#busy.set(socket, (this.#busy.get(socket) ?? 0) + 1);
      response.once('close', () => {
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
