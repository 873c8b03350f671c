import { connectDocker } from '../src/containers/docker-client.js';

/** Label that everything carries which the tests of one `npm test` make on an engine. */
const SUITE_LABEL = 'test-suite';

/**
 * Removes what tests have left behind, because they failed or were cut short.
 *
 * @param suite the label's value; what another `npm test` has made is left alone.
 * @returns how many things that were.
 */
export async function removeTestRemains(dockerHost: string, suite: string): Promise<number> {
  const docker = connectDocker(dockerHost);
  const filters = { label: [`${SUITE_LABEL}=${suite}`] };
  const containers = await docker.listContainers({ all: true, filters });
  for (const { Id } of containers) await docker.getContainer(Id).remove({ force: true, v: true });
  const networks = await docker.listNetworks({ filters });
  for (const { Id } of networks) await docker.getNetwork(Id).remove();
  const { Volumes: volumes } = await docker.listVolumes({ filters });
  for (const { Name } of volumes) await docker.getVolume(Name).remove();
  return containers.length + networks.length + volumes.length;
}
