import { createServer } from 'node:net';
import type { DockerRefusedError } from './container-errors.js';

/** Errors for a port in use or reserved, or an address that this machine does not have. */
const NOT_TO_BE_HAD: ReadonlySet<string | undefined> = new Set([
  'EADDRINUSE',
  'EACCES',
  'EADDRNOTAVAIL',
  'ENOTFOUND',
]);

/** Reports whether this process could listen on an address and port now; 0 is any port. */
export function canListen(host: string, port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.unref();
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (NOT_TO_BE_HAD.has(error.code)) resolve(false);
      else reject(error);
    });
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}

/**
 * Reports whether Docker's error means a port in use, by its text, since it has no code: the last resort for
 * a remote daemon, whose ports cannot be tested.
 */
export function saysPortTaken(error: DockerRefusedError): boolean {
  return /port is already allocated|address already in use/.test(error.said);
}
