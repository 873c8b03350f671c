import { connectEngine } from '../src/containers/engine.js';

/** Label that every container, network and volume of a test carries. */
const TEST_LABEL = 'test-run';

/** Ids of what tests have made on an engine and not removed. */
export interface TestRemains {
  readonly containers: readonly string[];
  readonly networks: readonly string[];
  readonly volumes: readonly string[];
}

/** What carries the test label now. */
export async function listTestRemains(dockerHost: string): Promise<TestRemains> {
  const docker = connectEngine(dockerHost);
  const filters = { label: [TEST_LABEL] };
  const [containers, networks, { Volumes: volumes }] = await Promise.all([
    docker.listContainers({ all: true, filters }),
    docker.listNetworks({ filters }),
    docker.listVolumes({ filters }),
  ]);
  return {
    containers: containers.map(({ Id }) => Id),
    networks: networks.map(({ Id }) => Id),
    volumes: volumes.map(({ Name }) => Name),
  };
}

/** Removes what a run left behind, and nothing that was there before it: others may test, too. */
export async function removeTestRemains(dockerHost: string, before: TestRemains): Promise<number> {
  const docker = connectEngine(dockerHost);
  const now = await listTestRemains(dockerHost);
  const added = (kind: keyof TestRemains) => now[kind].filter((id) => !before[kind].includes(id));
  for (const id of added('containers'))
    await docker.getContainer(id).remove({ force: true, v: true });
  for (const id of added('networks')) await docker.getNetwork(id).remove();
  for (const name of added('volumes')) await docker.getVolume(name).remove();
  return added('containers').length + added('networks').length + added('volumes').length;
}
