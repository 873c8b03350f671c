import http from 'node:http';
import net, { type Socket } from 'node:net';
import { checkedAddresses, connectTo, type Connect, type Guard } from './connect.js';
import { ACCEPTED_ENCODINGS, decompressed, encodingsOf } from './decompress.js';
import { OutboundError } from './outbound-error.js';
import { OwnPlaces, type OwnAddresses } from './own-places.js';
import { isExplicitlyAllowed, NO_EXCEPTIONS, type Allowed } from './reachable.js';
import { resolveName, type ResolveName } from './resolve-name.js';
import { readTarget, type Target } from './target.js';

/** Most bytes of an answer's head. */
const MAX_HEAD_BYTES = 64 * 1024;

/** Informational (1xx) answers allowed before the final one. */
const MAX_NOTICES = 10;

const REDIRECTS = new Set([301, 302, 303, 307, 308]);

export interface OutboundCall {
  readonly headers: Readonly<Record<string, string>>;
  readonly maxRedirects: number;
  /** Most bytes of the body, both compressed and decompressed. */
  readonly maxBytes: number;
  readonly types: readonly string[];
  /** The signal that ends the whole call: name resolution, connection and a slow body. */
  readonly signal: AbortSignal;
  /** Called before each connection to a host, including the first. Returns a function that frees the place. */
  readonly admit?: (host: string, signal: AbortSignal) => Promise<() => void>;
}

/** A checked destination, for callers that connect by themselves. */
export interface CheckedTarget extends Target {
  readonly addresses: readonly string[];
  /** True if the operator has allowed every address. */
  readonly isNamed: boolean;
}

export interface OutboundResponse {
  /** The final URL after all redirects. */
  readonly url: string;
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
      const found = await this.#ask(target, call);
      if (!('location' in found)) return found;
      if (left === 0) {
        throw new OutboundError('TOO_MANY_REDIRECTS', 'The URL redirects too many times');
      }
      target = readTarget(found.location, target.url);
    }
  }

  async #ask(
    target: Target,
    call: OutboundCall,
  ): Promise<OutboundResponse | { readonly location: string }> {
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
    request.end();
  });
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

const mediaTypeOf = (header = ''): string => (header.split(';', 1)[0] ?? '').trim().toLowerCase();

const asError = (reason: unknown): Error =>
  reason instanceof Error ? reason : new Error('Aborted while reading');
