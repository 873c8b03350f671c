import { isIP } from 'node:net';

/** Returns a host without its port and without an IPv6 address's brackets. */
export function hostOf(host: string): string {
  const text = decodeURIComponent(host);
  return isIP(text) === 6 ? text : text.replace(/:\d+$/, '').replace(/^\[|\]$/g, '');
}

/** Reports whether a host, with or without a port, is this machine, as are sockets and an empty host. */
export function isLoopback(host: string): boolean {
  const name = hostOf(host);
  if (name === '' || name.startsWith('/') || name === 'localhost' || name === '::1') return true;
  return isIP(name) === 4 && name.startsWith('127.');
}
