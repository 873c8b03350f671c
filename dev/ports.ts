import { once } from 'node:events';
import { createServer } from 'node:net';
import { StartFailure } from './failure.js';

/** Whether a listener could take this port now. */
export async function isPortFree(port: number, host = '127.0.0.1'): Promise<boolean> {
  const server = createServer();
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ port, host, exclusive: true }, resolve);
    });
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE' || code === 'EACCES') return false;
    if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
      throw new StartFailure(`HOST is ${host}, which is not an address of this machine.`);
    }
    throw error;
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
}

/**
 * Below what kernels give to whoever connects to somewhere or asks for any port: until a program listens on
 * the port that was found for it, seconds can pass. Also below the ports that tests give to agents.
 */
const FIRST_FREE = 10_000;
const FREE_PORTS = 10_000;
/** What a process looks at before it comes to where another one began. */
const LANE = 16;

/** For as long nobody else finds a port that was found: its program has begun to listen by then. */
const CLAIM_MS = 60_000;

let looked = process.pid * LANE;

/** The preferred port when it is free, else any free one that nobody on this machine found just before. */
export async function freePort(preferred?: number): Promise<number> {
  if (preferred !== undefined && (await isPortFree(preferred))) return preferred;
  for (let attempt = 0; attempt < FREE_PORTS; attempt++) {
    const port = FIRST_FREE + (looked++ % FREE_PORTS);
    if ((await claim(port)) && (await isPortFree(port))) return port;
  }
  throw new StartFailure('This machine has no free loopback port.');
}

/**
 * Keeps a port from other processes that look for one, by a socket that has no file and ends with this
 * process. Only Linux has such; elsewhere any port may be had.
 */
async function claim(port: number): Promise<boolean> {
  if (process.platform !== 'linux') return true;
  const server = createServer().unref();
  try {
    server.listen({ path: `\0agent-platform-service-port-${port}` });
    await once(server, 'listening');
    setTimeout(() => server.close(), CLAIM_MS).unref();
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return false;
    throw error;
  }
}

/** @throws StartFailure naming the variable that picks another port. */
export async function requirePort(variable: string, port: number, host: string): Promise<void> {
  if (port === 0 || (await isPortFree(port, host))) return;
  throw new StartFailure(`Port ${port} on ${host} is in use: set ${variable} to a free port.`);
}
