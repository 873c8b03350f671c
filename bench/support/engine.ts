import path from 'node:path';
import type Docker from 'dockerode';
import { obtainDocker } from '../../dev/docker/obtain-docker.js';
import { StartFailure } from '../../dev/failure.js';
import { connectDocker } from '../../src/docker/containers/docker-client.js';

/** The Docker engine that a benchmark uses. */
export interface BenchEngine {
  readonly host: string;
  readonly docker: Docker;
}

/** Finds the engine as `npm start` does, or starts one with its data in `folder`. */
export async function obtainEngine(
  folder: string,
  atEnd: (cleanup: () => Promise<void>) => void,
): Promise<BenchEngine> {
  const found = await obtainDocker({
    dataDir: path.join(folder, 'docker'),
    runDir: path.join(folder, 'run'),
    manage: process.env.MANAGE_DOCKER?.trim() !== 'never',
  });
  if (found.host === undefined) throw new StartFailure(found.missing);
  const { own } = found;
  if (own) atEnd(() => own.stop());
  return { host: found.host, docker: connectDocker(found.host) };
}

/** Returns a private /16 from 10.128 to 10.191 that overlaps no network of the engine. */
export async function freeSubnetPool(docker: Docker, except: readonly string[] = []) {
  const networks = await docker.listNetworks();
  const used = networks.flatMap(({ IPAM }) => (IPAM?.Config ?? []).map(({ Subnet }) => Subnet));
  for (let second = 128; second < 192; second++) {
    const pool = `10.${second}.0.0/16`;
    const isUsed = used.some((subnet) => subnet?.startsWith(`10.${second}.`));
    if (!isUsed && !except.includes(pool)) return pool;
  }
  throw new StartFailure(
    'All private networks from 10.128 to 10.191 are in use on the Docker engine.',
  );
}
