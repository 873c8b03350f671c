import { createServer, type AddressInfo } from 'node:net';
import { StartFailure } from './failure.js';

/** Whether a listener could take this port now. */
export async function isPortFree(port: number, host = '127.0.0.1'): Promise<boolean> {
  return (await listenOnce(port, host)) !== undefined;
}

/** Ports that were found here: until something listens on one, the kernel may name it once more. */
const found = new Set<number>();
const MAX_REMEMBERED = 1_000;

/** The preferred port when it is free, else any free one that was not found here just before. */
export async function freePort(preferred?: number): Promise<number> {
  if (preferred !== undefined && (await isPortFree(preferred))) return preferred;
  if (found.size >= MAX_REMEMBERED) found.clear();
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = await listenOnce(0, '127.0.0.1');
    if (port === undefined) break;
    if (found.has(port)) continue;
    found.add(port);
    return port;
  }
  throw new StartFailure('This machine has no free loopback port.');
}

/** @throws StartFailure naming the variable that picks another port. */
export async function requirePort(variable: string, port: number, host: string): Promise<void> {
  if (port === 0 || (await isPortFree(port, host))) return;
  throw new StartFailure(`Port ${port} on ${host} is in use: set ${variable} to a free port.`);
}

async function listenOnce(port: number, host: string): Promise<number | undefined> {
  const server = createServer();
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ port, host, exclusive: true }, resolve);
    });
    return (server.address() as AddressInfo).port; // a TCP listener's address is never a string
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE' || code === 'EACCES') return undefined;
    if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
      throw new StartFailure(`HOST is ${host}, which is not an address of this machine.`);
    }
    throw error;
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
}
