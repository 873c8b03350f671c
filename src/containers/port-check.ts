import { createServer } from 'node:net';
import type { DockerRefusedError } from './container-errors.js';

/** Whether a listener of this process could have the loopback port now. */
export function isLoopbackPortFree(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.unref();
    server.once('error', (error: NodeJS.ErrnoException) => {
      // Taken, or reserved by the system: neither can be given to an agent.
      if (error.code === 'EADDRINUSE' || error.code === 'EACCES') resolve(false);
      else reject(error);
    });
    server.listen({ host: '127.0.0.1', port, exclusive: true }, () => {
      server.close(() => resolve(true));
    });
  });
}

/**
 * Whether Docker says that a start failed for its port. It has no code for this, only text: so
 * this is asked last, of a Docker daemon elsewhere, where no look at the port itself is possible.
 */
export function saysPortTaken(error: DockerRefusedError): boolean {
  return /port is already allocated|address already in use/.test(error.message);
}
