import http from 'node:http';
import net, { type Socket } from 'node:net';
import { headOf, type AnswerHead } from '../http/strict-call.js';
import { checkedAddresses, connectTo, type Connect, type Guard } from './connect.js';
import { ACCEPTED_ENCODINGS, decompressed, encodingsOf } from './decompress.js';
import { OutboundError } from './outbound-error.js';
import { OwnPlaces, type OwnAddresses } from './own-places.js';
import { isExplicitlyAllowed, NO_EXCEPTIONS, type Allowed } from './reachable.js';
import { resolveName, type ResolveName } from './resolve-name.js';
import { readTarget, type Target } from './target.js';

/** Maximum bytes of an answer's head. */
const MAX_HEAD_BYTES = 64 * 1024;

/** Milliseconds for a `post`, without the wait for its admission. */
const POST_MS = 10_000;

/** Maximum bytes of the answer to a `post` that are read. */
const MAX_POST_ANSWER_BYTES = 64 * 1024;

/** Maximum number of informational (1xx) answers allowed before the final one. */
const MAX_NOTICES = 10;

const REDIRECTS = new Set([301, 302, 303, 307, 308]);

export interface OutboundCall {
  readonly headers: Readonly<Record<string, string>>;
  readonly maxRedirects: number;
  /** Maximum bytes of the body, both compressed and decompressed. */
  readonly maxBytes: number;
  readonly types: readonly string[];
  /** True if a 304 counts as an answer, with an empty body, because the request is conditional. */
  readonly isConditional?: boolean;
  /** The signal that ends the whole call: name resolution, connection and a slow body. */
  readonly signal: AbortSignal;
  /** Called before each connection to a host, including the first. Returns a function that frees the place. */
  readonly admit?: (host: string, signal: AbortSignal) => Promise<() => void>;
}

export interface OutboundPost extends Pick<OutboundCall, 'admit' | 'headers' | 'signal'> {
  readonly body: string;
}

export interface PostAnswer {
  readonly status: number;
  /** The first 64 kB of the body, as sent. */
  readonly body: Buffer;
}

/** A checked destination, for callers that connect by themselves. */
export interface CheckedTarget extends Target {
  readonly addresses: readonly string[];
  /** True if the operator has allowed every address. */
  readonly isNamed: boolean;
}

/** A file of any status, whose body is read while the connection is open. */
export interface FetchedFile extends AnswerHead {
  readonly body: AsyncIterable<Buffer>;
}

export interface OutboundResponse {
  /** The final URL after all redirects. */
  readonly url: string;
  readonly isNotModified: boolean;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: Buffer;
}

/**
 * The only client for addresses provided by users and agents. Each name is resolved once, every address
 * is checked, and the connection goes to a checked address; redirects repeat all steps. Proxies of the
 * environment are not used, because they would resolve the name again.
 */
export class OutboundClient {
  readonly #guard: Guard;

  constructor({
    allow = NO_EXCEPTIONS,
    connect = net.connect,
    ownAddresses,
    ownUrls = [],
    resolve = resolveName,
  }: OutboundOptions = {}) {
    this.#guard = { allowed: allow, connect, own: new OwnPlaces(ownUrls, ownAddresses), resolve };
  }

  /** Returns a URL's checked addresses, for a program that connects by itself. @throws OutboundError */
  async addressesOf(text: string, signal: AbortSignal): Promise<CheckedTarget> {
    const target = readTarget(text);
    const addresses = await checkedAddresses(target, this.#guard, signal);
    const { allowed } = this.#guard;
    const isNamedThere = addresses.every((each) => isExplicitlyAllowed(each, target.port, allowed));
    return { ...target, addresses, isNamed: isNamedThere };
  }

  /** Fetches a URL. @throws OutboundError with the reason; the signal's reason after an abort. */
  async get(text: string, call: OutboundCall): Promise<OutboundResponse> {
    let target = readTarget(text);
    for (let left = call.maxRedirects; ; left--) {
      const found = await this.#requestOnce(target, call);
      if (!('location' in found)) return found;
      if (left === 0) {
        throw new OutboundError('TOO_MANY_REDIRECTS', 'The URL redirects too many times');
      }
      target = readTarget(found.location, target.url);
    }
  }

  /**
   * Posts a body within 10 seconds, and returns the answer of any status; redirects are not followed.
   * @throws OutboundError if there is no answer; the signal's reason after an abort.
   */
  async post(
    text: string,
    { admit, body, headers, signal: end }: OutboundPost,
  ): Promise<PostAnswer> {
    const target = readTarget(text);
    const leave = await admit?.(target.host, end);
    const deadline = AbortSignal.timeout(POST_MS);
    const signal = AbortSignal.any([end, deadline]);
    try {
      const sent = { method: 'POST', headers, body, signal } as const;
      return await this.#exchange(target, sent, async (response) => ({
        status: response.statusCode ?? 0,
        body: await firstBytes(response, MAX_POST_ANSWER_BYTES),
      }));
    } catch (error) {
      if (!deadline.aborted || end.aborted) throw error;
      throw new OutboundError('TIMEOUT', 'The host of the URL did not answer within 10 seconds', {
        cause: error,
      });
    } finally {
      leave?.();
    }
  }

  /**
   * Fetches a file of any status without following redirects, as it is stored: `read` bounds its bytes.
   * @throws OutboundError if there is no answer; the signal's reason after an abort.
   */
  async download<T>(
    text: string,
    { signal }: Pick<OutboundCall, 'signal'>,
    read: (file: FetchedFile) => Promise<T>,
  ): Promise<T> {
    const headers = { 'accept-encoding': 'identity' };
    return this.#exchange(readTarget(text), { method: 'GET', headers, signal }, (response) => {
      if ((response.headers['content-encoding'] ?? 'identity') !== 'identity') {
        throw new OutboundError(
          'BAD_ENCODING',
          'The file is compressed, although no compression was requested',
        );
      }
      // Without an encoding the pieces are buffers.
      return read({ ...headOf(response), body: response as AsyncIterable<Buffer> });
    });
  }

  async #requestOnce(
    target: Target,
    call: OutboundCall,
  ): Promise<OutboundResponse | { readonly location: string }> {
    const { headers: given, signal } = call;
    const leave = await call.admit?.(target.host, signal);
    try {
      const headers = { 'accept-encoding': ACCEPTED_ENCODINGS, ...given };
      return await this.#exchange(target, { method: 'GET', headers, signal }, async (response) => {
        const { location } = response.headers;
        const status = response.statusCode ?? 0;
        if (REDIRECTS.has(status) && location !== undefined) return { location: asUtf8(location) };
        const isNotModified = status === 304 && call.isConditional === true;
        const body = isNotModified ? Buffer.alloc(0) : await readBody(response, status, call);
        return { url: target.url.href, headers: response.headers, isNotModified, body };
      });
    } finally {
      leave?.();
    }
  }

  /** Sends one request to a checked address, and reads the answer while its connection is open. */
  async #exchange<T>(
    target: Target,
    sent: Sent,
    read: (response: http.IncomingMessage) => Promise<T>,
  ): Promise<T> {
    const addresses = await checkedAddresses(target, this.#guard, sent.signal);
    const socket = await connectTo(target, addresses, this.#guard, sent.signal);
    try {
      return await read(await requestOver(socket, target, sent));
    } finally {
      socket.destroy();
    }
  }
}

export interface OutboundOptions {
  readonly allow?: Allowed;
  /** Addresses at which the platform itself is reached; their hosts are refused. */
  readonly ownUrls?: readonly string[];
  /** Addresses of this machine; by default those of its network interfaces. */
  readonly ownAddresses?: OwnAddresses;
  readonly resolve?: ResolveName;
  readonly connect?: Connect;
}

/** Decodes a header as UTF-8. Node reads headers as latin-1, but some servers send addresses in UTF-8. */
function asUtf8(header: string): string {
  const decoded = Buffer.from(header, 'latin1').toString('utf8');
  return decoded.includes('\uFFFD') ? header : decoded;
}

/** A request to one address. */
interface Sent {
  readonly method: 'GET' | 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
}

function requestOver(
  socket: Socket,
  { url }: Target,
  { body, headers, method, signal }: Sent,
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
      method,
      headers: { host: url.host, ...headers },
      maxHeaderSize: MAX_HEAD_BYTES,
      // Accepts heads as browsers do. The connection serves this request only, so nothing can be smuggled.
      insecureHTTPParser: true,
      setHost: false,
      signal,
    });
    let notices = 0;
    request.on('information', () => {
      if (++notices > MAX_NOTICES)
        request.destroy(new Error('The answer never begins: too many informational answers'));
    });
    request.on('upgrade', (_response, upgraded) => {
      upgraded.destroy();
      fail(new Error('The answer switches to another protocol'));
    });
    request.on('error', fail);
    request.on('response', resolve);
    request.end(body);
  });
}

/** Returns the beginning of a body; a body that breaks ends early, because its status has arrived. */
async function firstBytes(response: http.IncomingMessage, most: number): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const piece of response as AsyncIterable<Buffer>) {
      pieces.push(piece);
      bytes += piece.length;
      if (bytes >= most) break;
    }
  } catch {
    // The sender has decided before the body ended.
  }
  return Buffer.concat(pieces, Math.min(bytes, most));
}

async function readBody(
  response: http.IncomingMessage,
  status: number,
  { maxBytes, signal, types }: OutboundCall,
): Promise<Buffer> {
  const tooLarge = () =>
    new OutboundError('TOO_LARGE', `The page is larger than ${maxBytes / 1024 ** 2} MB`);
  if (status < 200 || status > 299) {
    throw new OutboundError('UPSTREAM_STATUS', `The page answered with status ${status}`);
  }
  const type = mediaTypeOf(response.headers['content-type']);
  if (!types.includes(type)) {
    const named = /^[\w.+-]{1,60}\/[\w.+-]{1,60}$/.test(type)
      ? type
      : 'content without a media type';
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
    throw new OutboundError(
      'UNREACHABLE',
      "The page's connection broke before the end: retry later",
      { cause: error },
    );
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

/** Returns the type before any parameter, also where a server has no semicolon, or repeats the type. */
const mediaTypeOf = (header = ''): string => (/[^\s;,]+/.exec(header)?.[0] ?? '').toLowerCase();

const asError = (reason: unknown): Error =>
  reason instanceof Error ? reason : new Error('Aborted while reading');
