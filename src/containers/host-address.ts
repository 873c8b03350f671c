import { networkInterfaces } from 'node:os';
import type Docker from 'dockerode';
import { callEngine } from './engine.js';

/**
 * The address at which containers reach this process as `host.docker.internal`: that of the
 * engine's bridge, or loopback where the engine runs in a machine of its own that forwards to it
 * (Docker Desktop).
 */
export async function hostAddress(docker: Docker, timeoutMs: number): Promise<string> {
  const bridge = await callEngine(timeoutMs, () => docker.getNetwork('bridge').inspect());
  const gateway: string | undefined = bridge.IPAM?.Config?.[0]?.Gateway;
  const own = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return own.find(({ address }) => address === gateway)?.address ?? '127.0.0.1';
}
