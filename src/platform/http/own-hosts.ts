import type { IncomingMessage } from 'node:http';
import { isIPv6 } from 'node:net';

export const LOOPBACK_NAMES = ['localhost', '127.0.0.1', '[::1]'] as const;

/** Formats an address for a URL or a `Host` header. */
export const inUrl = (address: string): string => (isIPv6(address) ? `[${address}]` : address);

/**
 * Reports whether a request's `Host` is a (lower-case) name of this service or the address that received it.
 * Stops DNS rebinding: a rebound page reaches this address, but its browser sends the page's own name.
 * HTTP/1.0, which no browser speaks, needs no `Host`.
 */
export function isOwnHost(request: IncomingMessage, names: ReadonlySet<string>): boolean {
  const { host } = request.headers;
  if (host === undefined) return true;
  const name = host.replace(/:\d*$/, '').toLowerCase();
  if (names.has(name)) return true;
  const address = request.socket.localAddress?.replace(/^::ffff:/, '') ?? '';
  return address !== '' && name === inUrl(address);
}
