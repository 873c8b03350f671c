import { createServer } from 'node:net';
import type { DockerRefusedError } from './container-errors.js';

/** Taken, reserved by the system, or no address of this machine. */
const NOT_TO_BE_HAD: ReadonlySet<string | undefined> = new Set([
  'EADDRINUSE',
  'EACCES',
  'EADDRNOTAVAIL',
  'ENOTFOUND',
]);

/** Whether a listener of this process could have the port of an address now; 0 is any port. */
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
 * Whether Docker says that a start failed for its port. It has no code for this, only text: so
 * this is asked last, of a Docker daemon elsewhere, where no look at the port itself is possible.
 */
export function saysPortTaken(error: DockerRefusedError): boolean {
  return /port is already allocated|address already in use/.test(error.said);
}
