import type { IncomingMessage } from 'node:http';
import { OWNER_COOKIE } from '../../src/agents/address/owner-ticket.js';
import { isSignInCookie } from '../auth/provider-flows.js';
import { SESSION_COOKIE } from '../auth/session-cookie.js';

/** Headers as Node has them: names and values in turn. */
type RawHeaders = readonly string[];

/** Headers of one connection, which a proxy never passes on (RFC 9110, 7.6.1). */
const OF_CONNECTION: ReadonlySet<string> = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'proxy-authorization'],
  ...['te', 'trailer', 'transfer-encoding', 'upgrade', 'expect'],
]);

/** Claims about a client that gateways believe; none is passed on, whoever sent it. */
const CLAIMS = /^(?:forwarded|via|x-forwarded-.+|x-real-ip|tailscale-.+)$/;

/** Answers that concern more than the agent's own host name. */
const BEYOND_HOST: ReadonlySet<string> = new Set(['clear-site-data', 'alt-svc']);

/** Returns a request's framing as headers for the gateway; none for a request without a body. */
export function framingOf({ headers }: IncomingMessage): string[] {
  if (headers['transfer-encoding'] !== undefined) return ['Transfer-Encoding', 'chunked'];
  const length = headers['content-length'];
  return length === undefined ? [] : ['Content-Length', length];
}

/** Returns a request's headers for the gateway, without framing, `Host` and `Origin`. */
export function headersForGateway({ headers, rawHeaders }: IncomingMessage): string[] {
  const named = namesIn(headers.connection);
  return filtered(rawHeaders, (name, value) => {
    if (OF_CONNECTION.has(name) || named.has(name) || CLAIMS.test(name)) return undefined;
    if (name === 'host' || name === 'origin' || name === 'content-length') return undefined;
    return name === 'cookie' ? withoutOurs(value) : value;
  });
}

/** Returns an answer's headers for the client, with its `Content-Length`. */
export function headersForClient({ headers, rawHeaders }: IncomingMessage): string[] {
  const named = namesIn(headers.connection);
  return filtered(rawHeaders, (name, value) => {
    if (OF_CONNECTION.has(name) || named.has(name) || BEYOND_HOST.has(name)) return undefined;
    return name === 'set-cookie' ? ofHostAlone(value) : value;
  });
}

function filtered(
  raw: RawHeaders,
  valueOf: (name: string, value: string) => string | undefined,
): string[] {
  const kept: string[] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const [name = '', given = ''] = [raw[at], raw[at + 1]];
    const value = valueOf(name.toLowerCase(), given);
    if (value !== undefined) kept.push(name, value);
  }
  return kept;
}

const NONE: ReadonlySet<string> = new Set();

/** Returns the header names that a `Connection` lists, in lower case. */
function namesIn(connection = 'close'): ReadonlySet<string> {
  if (connection === 'keep-alive' || connection === 'close') return NONE;
  return new Set(connection.split(',').map((name) => name.trim().toLowerCase()));
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
