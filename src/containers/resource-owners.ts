import type Docker from 'dockerode';
import { LABEL } from './container-spec.js';
import { callDocker } from './docker-client.js';

/** Ids of the agents that have a container, a network or a volume of this installation. */
export async function resourceOwners(
  docker: Docker,
  installation: string,
  timeoutMs: number,
): Promise<ReadonlySet<string>> {
  const filters = JSON.stringify({ label: [`${LABEL.installation}=${installation}`] });
  const [containers, networks, { Volumes: volumes }] = await Promise.all([
    callDocker(timeoutMs, (abortSignal) =>
      docker.listContainers({ all: true, filters, abortSignal }),
    ),
    callDocker(timeoutMs, (abortSignal) => docker.listNetworks({ filters, abortSignal })),
    callDocker(timeoutMs, (abortSignal) => docker.listVolumes({ filters, abortSignal })),
  ]);
  const owned = [...containers, ...networks, ...(volumes ?? [])];
  return new Set(owned.flatMap(({ Labels: labels }) => labels?.[LABEL.agent] ?? []));
}
