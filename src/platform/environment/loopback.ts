import { isIP } from 'node:net';

/** Reports whether a host, with or without a port, is this machine, as are sockets and an empty host. */
export function isLoopback(host: string): boolean {
  const name = decodeURIComponent(host)
    .replace(/:\d+$/, '')
    .replace(/^\[|\]$/g, '');
  if (name === '' || name.startsWith('/') || name === 'localhost' || name === '::1') return true;
  return isIP(name) === 4 && name.startsWith('127.');
}
