import { once } from 'node:events';
import { createServer } from 'node:net';
import { StartFailure } from './failure.js';

/** Reports whether a listener could bind this port now. */
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
      throw new StartFailure(
        `HOST is ${host}, which is not an address of this machine: set HOST to a local address.`,
      );
    }
    throw error;
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
}

/**
 * Below the ephemeral ports of kernels: seconds can pass until a program listens on the port chosen for
 * it. Also below the ports that tests assign to agents.
 */
const FIRST_FREE = 10_000;
const FREE_PORTS = 10_000;
/** Number of ports that a process probes before it reaches another process's first one. */
const LANE = 16;

/** Milliseconds for which a chosen port is reserved: by then its program has begun to listen. */
const CLAIM_MS = 60_000;

let checked = process.pid * LANE;

/**
 * Returns the preferred port if free, else any free one that no other process on this machine has just
 * chosen.
 */
export async function freePort(preferred?: number): Promise<number> {
  if (preferred !== undefined && (await isPortFree(preferred))) return preferred;
  for (let attempt = 0; attempt < FREE_PORTS; attempt++) {
    const port = FIRST_FREE + (checked++ % FREE_PORTS);
    if ((await claim(port)) && (await isPortFree(port))) return port;
  }
  throw new StartFailure('This machine has no free loopback port: stop other programs and retry.');
}

/**
 * Reserves a port against other processes that search for one, with an abstract socket that has no file
 * and ends with this process. Only Linux has such sockets; elsewhere every port counts as reserved.
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

/** Requires that a port is free. @throws StartFailure naming the variable that sets another port. */
export async function requirePort(variable: string, port: number, host: string): Promise<void> {
  if (port === 0 || (await isPortFree(port, host))) return;
  throw new StartFailure(`Port ${port} on ${host} is in use: set ${variable} to a free port.`);
}
