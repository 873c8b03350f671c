import { isIP } from 'node:net';

/** Of a host, with a port or without; a socket's folder and nothing at all are this machine, too. */
export function isLoopback(host: string): boolean {
  const name = decodeURIComponent(host)
    .replace(/:\d+$/, '')
    .replace(/^\[|\]$/g, '');
  if (name === '' || name.startsWith('/') || name === 'localhost' || name === '::1') return true;
  return isIP(name) === 4 && name.startsWith('127.');
}
