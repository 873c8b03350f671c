import http from 'node:http';
import net, { type Socket } from 'node:net';
import { checkedAddresses, connectTo, type Connect, type Guard } from './connect.js';
import { ACCEPTED_ENCODINGS, decompressed, encodingsOf } from './decompress.js';
import { OutboundError } from './outbound-error.js';
import { isNamed, NOTHING_MORE, type Allowed } from './reachable.js';
import { resolveName, type ResolveName } from './resolve-name.js';
import { readTarget, type Target } from './target.js';

/** Of an answer's head. */
const MAX_HEAD_BYTES = 64 * 1024;

/** Answers of the kind 1xx before the one that counts. */
const MAX_NOTICES = 10;

const REDIRECTS = new Set([301, 302, 303, 307, 308]);

/** What is asked of somebody outside. */
export interface OutboundCall {
  readonly headers: Readonly<Record<string, string>>;
  readonly maxRedirects: number;
  /** Of the body, packed as well as unpacked. */
  readonly maxBytes: number;
  /** Media types that are read. */
  readonly types: readonly string[];
  /** Ends all of it: the look-up, the connection, a body that drips. */
  readonly signal: AbortSignal;
  /** Asked before each connection to a host, the first one included; gives back what it took. */
  readonly admit?: (host: string, signal: AbortSignal) => Promise<() => void>;
}

/** Where a request may go, for who connects by themselves. */
export interface CheckedTarget extends Target {
  readonly addresses: readonly string[];
  /** The operator has named all of them. */
  readonly isNamed: boolean;
}

/** What was read. */
export interface OutboundAnswer {
  /** Where it was, after all redirects. */
  readonly url: string;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: Buffer;
}

/**
 * The one way to what people and agents name by its address. Names are looked up once and every address of
 * theirs is checked; the connection is made to one of those, and all of it again for each redirect.
 * Proxies of the environment are not asked: they would look names up once more.
 */
export class Outbound {
  readonly #guard: Guard;

  constructor({
    allow = NOTHING_MORE,
    connect = net.connect,
    resolve = resolveName,
  }: OutboundOptions = {}) {
    this.#guard = { allowed: allow, connect, resolve };
  }

  /**
   * The checked addresses of what a text names, for a program that connects by itself.
   *
   * @throws OutboundError when it cannot be read or may not be reached.
   */
  async addressesOf(text: string, signal: AbortSignal): Promise<CheckedTarget> {
    const target = readTarget(text);
    const addresses = await checkedAddresses(target, this.#guard, signal);
    const { allowed } = this.#guard;
    const isNamedThere = addresses.every((each) => isNamed(each, target.port, allowed));
    return { ...target, addresses, isNamed: isNamedThere };
  }

  /**
   * Reads what an address leads to.
   *
   * @throws OutboundError saying why not; the signal's reason when it aborts.
   */
  async get(text: string, call: OutboundCall): Promise<OutboundAnswer> {
    let target = readTarget(text);
    for (let left = call.maxRedirects; ; left--) {
      const found = await this.#ask(target, call);
      if (!('location' in found)) return found;
      if (left === 0) {
        throw new OutboundError('TOO_MANY_REDIRECTS', 'The URL redirects too often');
      }
      target = readTarget(found.location, target.url);
    }
  }

  async #ask(
    target: Target,
    call: OutboundCall,
  ): Promise<OutboundAnswer | { readonly location: string }> {
    const leave = await call.admit?.(target.host, call.signal);
    let socket: Socket | undefined;
    try {
      const addresses = await checkedAddresses(target, this.#guard, call.signal);
      socket = await connectTo(target, addresses, this.#guard, call.signal);
      const response = await requestOver(socket, target, call);
      const { location } = response.headers;
      const status = response.statusCode ?? 0;
      if (REDIRECTS.has(status) && location !== undefined) return { location: asUtf8(location) };
      const body = await readBody(response, status, call);
      return { url: target.url.href, headers: response.headers, body };
    } finally {
      socket?.destroy();
      leave?.();
    }
  }
}

export interface OutboundOptions {
  readonly allow?: Allowed;
  readonly resolve?: ResolveName;
  readonly connect?: Connect;
}

/** Headers are read as latin-1, and some servers send addresses as UTF-8 in them. */
function asUtf8(header: string): string {
  const decoded = Buffer.from(header, 'latin1').toString('utf8');
  return decoded.includes('\uFFFD') ? header : decoded;
}

function requestOver(
  socket: Socket,
  { url }: Target,
  { headers, signal }: OutboundCall,
): Promise<http.IncomingMessage> {
  return new Promise((resolve, reject) => {
    const fail = (error: unknown) =>
      reject(
        signal.aborted || error instanceof OutboundError
          ? asError(signal.aborted ? signal.reason : error)
          : new OutboundError('UNREACHABLE', 'The host of the URL does not answer in HTTP', {
              cause: error,
            }),
      );
    const request = http.request({
      createConnection: () => socket,
      path: `${url.pathname}${url.search}`,
      method: 'GET',
      headers: { host: url.host, 'accept-encoding': ACCEPTED_ENCODINGS, ...headers },
      maxHeaderSize: MAX_HEAD_BYTES,
      setHost: false,
      signal,
    });
    let notices = 0;
    request.on('information', () => {
      if (++notices > MAX_NOTICES) request.destroy(new Error('The answer never begins'));
    });
    request.on('upgrade', (_response, upgraded) => {
      upgraded.destroy();
      fail(new Error('The answer asks for another protocol'));
    });
    request.on('error', fail);
    request.on('response', resolve);
    request.end();
  });
}

async function readBody(
  response: http.IncomingMessage,
  status: number,
  { maxBytes, signal, types }: OutboundCall,
): Promise<Buffer> {
  const tooLarge = () =>
    new OutboundError('TOO_LARGE', `The page has more than ${maxBytes / 1024 ** 2} MB`);
  if (status < 200 || status > 299) {
    throw new OutboundError('UPSTREAM_STATUS', `The page answered with status ${status}`);
  }
  const type = mediaTypeOf(response.headers['content-type']);
  if (!types.includes(type)) {
    const named = /^[\w.+-]{1,60}\/[\w.+-]{1,60}$/.test(type)
      ? type
      : 'nothing that names its type';
    throw new OutboundError('NOT_HTML', `The URL leads to ${named}, not to ${types.join(' or ')}`);
  }
  const encodings = encodingsOf(response.headers['content-encoding']);
  const pieces: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const piece of decompressed(atMost(response, maxBytes, tooLarge), encodings)) {
      bytes += piece.length;
      if (bytes > maxBytes) throw tooLarge();
      pieces.push(piece);
    }
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof OutboundError) throw error;
    throw new OutboundError('UNREACHABLE', 'The page broke off', { cause: error });
  }
  return Buffer.concat(pieces, bytes);
}

async function* atMost(
  body: AsyncIterable<Buffer>,
  maxBytes: number,
  tooLarge: () => Error,
): AsyncGenerator<Buffer, void> {
  let bytes = 0;
  for await (const piece of body) {
    bytes += piece.length;
    if (bytes > maxBytes) throw tooLarge();
    yield piece;
  }
}

/** Without its parameters, in lower case. */
const mediaTypeOf = (header = ''): string => (header.split(';', 1)[0] ?? '').trim().toLowerCase();

const asError = (reason: unknown): Error =>
  reason instanceof Error ? reason : new Error('Given up while it was read');
