import { createServer } from 'node:net';
import type Docker from 'dockerode';
import { callDocker } from './docker-client.js';

/**
 * The address at which containers reach this process as `host.docker.internal`: that of the
 * Docker's bridge, or loopback where Docker runs in a machine of its own that forwards to it
 * (Docker Desktop).
 */
export async function hostAddress(docker: Docker, timeoutMs: number): Promise<string> {
  const bridge: Docker.NetworkInspectInfo = await callDocker(timeoutMs, () =>
    docker.getNetwork('bridge').inspect(),
  );
  const { Gateway, Subnet = '' } = bridge.IPAM?.Config?.[0] ?? {};
  // Older versions do not say it: then it is the first, as `172.17.0.1` of `172.17.0.0/16`.
  const gateway = Gateway || Subnet.replace(/\.\d+\/\d+$/, '.1');
  return (await isOwnAddress(gateway)) ? gateway : '127.0.0.1';
}

/** By trying: the list of interfaces leaves out a bridge that no container is on at the moment. */
function isOwnAddress(address: string): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ host: address, port: 0 }, () => server.close(() => resolve(true)));
  });
}
