import { Context } from '@temporalio/activity';
import type { AgentRef } from '../src/agents/agent-ref.js';
import type { RuntimeStore } from '../src/agents/runtime-store.js';
import { awaitReady } from '../src/agents/await-ready.js';
import {
  ContainerMissingError,
  DockerRefusedError,
  PortTakenError,
} from '../src/containers/container-errors.js';
import type { DockerHost } from '../src/containers/docker-host.js';
import { dockerActivities } from './docker-activity.js';

/** How long an agent is given to end by itself before it is killed. */
const STOP_GRACE_SECONDS = 10;

/** What keeps a container from being started as it is, and not from being made again. */
const MAKE_ANEW = [ContainerMissingError, DockerRefusedError, PortTakenError];

/**
 * A Docker daemon that was killed while it started a container may never start that one again,
 * because its runtime still has the first start; a new container in its place does start.
 */
const isStuck = (error: unknown): boolean =>
  error instanceof DockerRefusedError && error.statusCode >= 500;

export interface ContainerActivityDependencies {
  readonly docker: DockerHost;
  readonly specs: RuntimeStore;
}

/**
 * What only the worker beside a Docker daemon can do. Every one of them may run again after it
 * happened and nobody heard: it adopts what is there.
 */
export function createContainerActivities(dependencies: ContainerActivityDependencies) {
  const { docker, specs } = dependencies;

  return dockerActivities({
    async ensureImage(agent: AgentRef) {
      const { cancellationSignal } = Context.current();
      const image = await specs.imageOf(agent);
      const { version } = await docker.images.ensure(image, { signal: cancellationSignal });
      await specs.recordImage(agent, image, version);
    },
    createNetwork: async (agent: AgentRef) => docker.networks.ensure(await specs.specOf(agent)),
    /** Ports of no use to this agent, since networks of others have the subnets that go with them. */
    takenPlaces: async ({ agentId }: AgentRef) =>
      specs.placesIn(await docker.networks.takenSubnets(agentId)),
    createVolume: async (agent: AgentRef) => docker.volumes.ensure(await specs.specOf(agent)),
    createContainer,
    async startContainer(agent: AgentRef) {
      try {
        await docker.containers.start(agent.agentId);
      } catch (error) {
        if (!isStuck(error)) throw error;
        await docker.containers.remove(agent.agentId);
        await createContainer(agent);
        await docker.containers.start(agent.agentId);
      }
    },
    /** Starts the container that is there. False when something of it has to be made first. */
    async startExisting(agent: AgentRef) {
      try {
        await docker.containers.start(agent.agentId);
        return true;
      } catch (error) {
        if (MAKE_ANEW.some((type) => error instanceof type)) return false;
        throw error;
      }
    },
    async awaitReady(agent: AgentRef) {
      const gateway = await specs.gatewayOf(agent);
      const { cancellationSignal: signal } = Context.current();
      await awaitReady(docker.containers, agent.agentId, { ...gateway, signal });
    },
    stopContainer: ({ agentId }: AgentRef) => docker.containers.stop(agentId, STOP_GRACE_SECONDS),
    removeContainer: ({ agentId }: AgentRef) => docker.containers.remove(agentId),
    removeNetwork: ({ agentId }: AgentRef) => docker.networks.remove(agentId),
    removeVolume: ({ agentId }: AgentRef) => docker.volumes.remove(agentId),
  });

  async function createContainer(agent: AgentRef) {
    const { id } = await docker.containers.ensure(await specs.specOf(agent));
    await specs.recordContainer(agent, id);
  }
}

export type ContainerActivities = ReturnType<typeof createContainerActivities>;
