import { connectDocker } from '../../src/docker/containers/docker-client.js';

/** Time limit of each call, in milliseconds. */
const TIMEOUT_MS = 30_000;

/** A labelled object on a Docker engine. */
export interface Labelled {
  readonly kind: 'container' | 'network' | 'volume';
  /** The id; a volume's name. */
  readonly id: string;
  readonly name: string;
}

/** Returns the objects with a label `name=value`, in an order in which they can be removed. */
export async function findLabelled(dockerHost: string, label: string): Promise<Labelled[]> {
  const docker = connectDocker(dockerHost);
  const filters = JSON.stringify({ label: [label] });
  const ask = { filters, abortSignal: AbortSignal.timeout(TIMEOUT_MS) };
  const [containers, networks, { Volumes: volumes }] = await Promise.all([
    docker.listContainers({ all: true, ...ask }),
    docker.listNetworks(ask),
    docker.listVolumes(ask),
  ]);
  return [
    ...containers.map(({ Id: id, Names: names }) => ({
      kind: 'container' as const,
      id,
      name: names[0]?.slice('/'.length) ?? id,
    })),
    ...networks.map(({ Id: id, Name: name }) => ({ kind: 'network' as const, id, name })),
    ...(volumes ?? []).map(({ Name: name }) => ({ kind: 'volume' as const, id: name, name })),
  ];
}

/** Removes an object permanently. */
export async function removeLabelled(
  dockerHost: string,
  found: readonly Labelled[],
): Promise<void> {
  const docker = connectDocker(dockerHost);
  for (const { kind, id } of found) {
    const bound = { abortSignal: AbortSignal.timeout(TIMEOUT_MS) };
    if (kind === 'container') {
      await docker.getContainer(id).remove({ force: true, v: true, ...bound });
    } else if (kind === 'network') await docker.getNetwork(id).remove(bound);
    else await docker.getVolume(id).remove(bound);
  }
}
