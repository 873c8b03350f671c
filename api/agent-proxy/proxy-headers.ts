import type { IncomingMessage } from 'node:http';
import { OWNER_COOKIE } from '../../src/agents/address/owner-ticket.js';
import { isSignInCookie } from '../auth/provider-flows.js';
import { SESSION_COOKIE } from '../auth/session-cookie.js';

/** Headers of a gateway's answer, with names in lower case. */
export type AnswerHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** Headers of one connection, which a proxy never passes on (RFC 9110, 7.6.1). */
const OF_CONNECTION: ReadonlySet<string> = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'proxy-authorization'],
  ...['te', 'trailer', 'transfer-encoding', 'upgrade', 'expect'],
]);

/** Claims about a client that gateways believe; none is passed on, whoever sent it. */
const CLAIMS = /^(?:forwarded|via|x-forwarded-.+|x-real-ip|tailscale-.+)$/;

/** Headers that the proxy writes itself. */
const OF_PROXY: ReadonlySet<string> = new Set(['host', 'origin', 'content-length']);

/** Answers that concern more than the agent's own host name. */
const BEYOND_HOST: ReadonlySet<string> = new Set(['clear-site-data', 'alt-svc']);

/** Reports whether a request has a body, which may be empty. */
export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || headers['content-length'] !== undefined;

/** Returns the header of a body's length; none for a chunked body, whose pieces have their own lengths. */
export function lengthOf({ headers }: IncomingMessage): string[] {
  const length = headers['content-length'];
  const isChunked = headers['transfer-encoding'] !== undefined;
  return length === undefined || isChunked ? [] : ['Content-Length', length];
}

/** Returns a request's headers for the gateway, without framing, `Host` and `Origin`. */
export function headersForGateway({ headers, rawHeaders }: IncomingMessage): string[] {
  const named = namesIn(headers.connection);
  const kept: string[] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const [name = '', given = ''] = [rawHeaders[at], rawHeaders[at + 1]];
    const lower = name.toLowerCase();
    if (OF_CONNECTION.has(lower) || named.has(lower) || OF_PROXY.has(lower)) continue;
    if (CLAIMS.test(lower)) continue;
    const value = lower === 'cookie' ? withoutOurs(given) : given;
    if (value !== undefined) kept.push(name, value);
  }
  return kept;
}

/** Returns an answer's headers for the client, with its `Content-Length`. */
export function headersForClient(headers: AnswerHeaders): string[] {
  const named = namesIn(headers.connection);
  const kept: string[] = [];
  for (const [name, given = []] of Object.entries(headers)) {
    if (OF_CONNECTION.has(name) || named.has(name) || BEYOND_HOST.has(name)) continue;
    for (const each of typeof given === 'string' ? [given] : given) {
      const value = name === 'set-cookie' ? ofHostAlone(each) : each;
      if (value !== undefined) kept.push(name, value);
    }
  }
  return kept;
}

const NONE: ReadonlySet<string> = new Set();

/** Returns the header names that a `Connection` lists, in lower case. */
function namesIn(connection: string | readonly string[] = 'close'): ReadonlySet<string> {
  if (connection === 'keep-alive' || connection === 'close') return NONE;
  const listed = typeof connection === 'string' ? connection : connection.join(',');
  return new Set(listed.split(',').map((name) => name.trim().toLowerCase()));
}

/** Cookies of the platform. Names are compared without case, as some servers read them. */
function isOurs(name: string): boolean {
  const lower = name.trim().toLowerCase();
  return lower === SESSION_COOKIE || lower === OWNER_COOKIE || isSignInCookie(lower);
}

/** Removes the platform's cookies; undefined if none is left. */
function withoutOurs(header: string): string | undefined {
  const kept = header.split(';').filter((pair) => !isOurs(pair.split('=', 1)[0] ?? ''));
  return kept.some((pair) => pair.trim() !== '') ? kept.join(';').trim() : undefined;
}

/** Limits a cookie to the agent's own host name; undefined if it has the name of one of ours. */
function ofHostAlone(cookie: string): string | undefined {
  const [pair = '', ...attributes] = cookie.split(';');
  if (isOurs(pair.split('=', 1)[0] ?? '')) return undefined;
  const isDomain = (attribute: string) => /^\s*domain\s*(?:=|$)/i.test(attribute);
  return [pair, ...attributes.filter((attribute) => !isDomain(attribute))].join(';');
}
