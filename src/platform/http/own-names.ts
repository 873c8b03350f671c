import type { IncomingMessage } from 'node:http';
import { isIPv6 } from 'node:net';

/** What this machine calls itself. */
export const LOOPBACK_NAMES = ['localhost', '127.0.0.1', '[::1]'] as const;

/** An address as it stands in a URL or a `Host` header. */
export const inUrl = (address: string): string => (isIPv6(address) ? `[${address}]` : address);

/**
 * Whether a request means us by its `Host`, whatever the port. A page whose name was made to lead to
 * our address (DNS rebinding) is told by this: it can speak to us as from our own site, and from this
 * machine, but its browser says its name. Without a name it is HTTP/1.0, which no browser speaks.
 *
 * @param names ours, in lower case; beside them the address counts at which the request came in.
 */
export function meansUs(request: IncomingMessage, names: ReadonlySet<string>): boolean {
  const { host } = request.headers;
  if (host === undefined) return true;
  const name = host.replace(/:\d*$/, '').toLowerCase();
  if (names.has(name)) return true;
  const address = request.socket.localAddress?.replace(/^::ffff:/, '') ?? '';
  return address !== '' && name === inUrl(address);
}
