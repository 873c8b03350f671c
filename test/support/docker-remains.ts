import type Docker from 'dockerode';
import { LABEL } from '../../src/docker/containers/container-spec.js';
import { DockerClient } from '../../src/docker/containers/docker-client.js';
import { ensureEgressImage } from '../../dev/egress-image/ensure-egress-image.js';
import { releaseEgress } from '../../src/docker/egress/agent-egress.js';
import { LOCAL_HELPER_IMAGE } from '../../src/docker/egress/helper-image-name.js';

/** Resources of agents left on the engine, by kind. */
export interface Remains {
  readonly containers: readonly Docker.ContainerInfo[];
  readonly networks: readonly string[];
  readonly volumes: readonly string[];
}

/** Lists everything on the engine that belongs to an installation, or to one of its agents. */
export async function remainsOf(
  docker: Docker,
  installation: string,
  agentId?: string,
): Promise<Remains> {
  const label = [`${LABEL.installation}=${installation}`];
  if (agentId !== undefined) label.push(`${LABEL.agent}=${agentId}`);
  const filters = { label };
  const [containers, networks, { Volumes: volumes }] = await Promise.all([
    docker.listContainers({ all: true, filters }),
    docker.listNetworks({ filters }),
    docker.listVolumes({ filters }),
  ]);
  return {
    containers,
    networks: networks.map(({ Id }) => Id),
    volumes: volumes.map(({ Name }) => Name),
  };
}

/** Removes the resources left by the agents of a stopped installation. */
export async function removeRemains(docker: Docker, installation: string): Promise<void> {
  const { containers, networks, volumes } = await remainsOf(docker, installation);
  for (const { Id } of containers) {
    await docker.getContainer(Id).remove({ force: true, v: true });
  }
  for (const id of networks) await docker.getNetwork(id).remove();
  for (const name of volumes) await docker.getVolume(name).remove();
  const client = new DockerClient({ dockerHost: process.env.DOCKER_HOST, installation });
  await releaseEgress(client, await ensureEgressImage(docker, LOCAL_HELPER_IMAGE));
}
