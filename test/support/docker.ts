import { randomUUID } from 'node:crypto';
import type Docker from 'dockerode';
import type { AgentContainerSpec } from '../../src/docker/containers/container-spec.js';
import type { AgentContainers } from '../../src/docker/containers/agent-containers.js';
import { DockerHost } from '../../src/docker/containers/docker-host.js';
import { connectDocker } from '../../src/docker/containers/docker-client.js';
import { freePort } from '../../dev/ports.js';

/** Label on everything that a test run creates, in addition to the product's labels. */
export const TEST_RUN_LABEL = 'test-run';

/** Docker for one test file: an installation of its own that can be removed completely. */
export interface TestDocker {
  readonly docker: Docker;
  readonly host: DockerHost;
  readonly containers: AgentContainers;
  readonly installation: string;
  /** Labels for resources that the test creates itself, including `test-run`. */
  readonly labels: Readonly<Record<string, string>>;
  /** Returns a specification for a new agent on a free port and a free subnet. */
  spec(overrides?: Partial<AgentContainerSpec> & { image: string }): Promise<AgentContainerSpec>;
  /** Removes every container, network and volume of this run. */
  close(): Promise<void>;
}

/** Connects to Docker at `DOCKER_HOST`, or at its default socket. */
export function testDocker(): TestDocker {
  const dockerHost = process.env.DOCKER_HOST;
  const installation = `test-${randomUUID()}`;
  const docker = connectDocker(dockerHost);
  const suite = process.env.TEST_SUITE; // set by `npm test`, which cleans up by this label after all files
  const labels = { [TEST_RUN_LABEL]: installation, ...(suite && { 'test-suite': suite }) };
  const host = new DockerHost({ dockerHost, installation, labels });
  return {
    docker,
    host,
    containers: host.containers,
    installation,
    labels,
    spec: async (overrides = { image: '' }) => ({
      agentId: randomUUID(),
      userId: 'user-1',
      port: await freePort(),
      subnet: freeSubnet(),
      env: {},
      secrets: {},
      files: {},
      ...overrides,
    }),
    close: () => removeAll(docker, installation),
  };
}

/** Returns one of 65,536 small networks, 10.232 to 10.247, outside every platform's pool (agent-places.ts). */
export function freeSubnet(): string {
  const number = Math.floor(Math.random() * 65_536);
  return `10.${232 + (number >> 12)}.${(number >> 4) & 255}.${(number & 15) * 16}/28`;
}

async function removeAll(docker: Docker, run: string): Promise<void> {
  const filters = { label: [`${TEST_RUN_LABEL}=${run}`] };
  for (const { Id } of await docker.listContainers({ all: true, filters })) {
    await docker.getContainer(Id).remove({ force: true, v: true });
  }
  for (const { Id } of await docker.listNetworks({ filters: JSON.stringify(filters) })) {
    await docker.getNetwork(Id).remove();
  }
  const { Volumes: volumes } = await docker.listVolumes({ filters: JSON.stringify(filters) });
  for (const { Name } of volumes) await docker.getVolume(Name).remove();
}
