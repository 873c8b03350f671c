import { Context } from '@temporalio/activity';
import type { AgentRef } from '../src/types/agent-ref.js';
import { awaitReady } from '../src/agents/watchdog/await-ready.js';
import type { HostTurns } from '../src/agents/watchdog/host-turns.js';
import type { MemorySizes } from '../src/agents/memory/memory-sizes.js';
import type { AgentVolumeStore } from '../src/agents/memory/agent-volume-store.js';
import type { RuntimeStore } from '../src/agents/operations/runtime-store.js';
import type { StartProgress } from '../src/agents/watchdog/start-progress.js';
import type { CloneMemories } from '../src/agents/clones/clone-memories.js';
import { volumeName } from '../src/docker/containers/container-spec.js';
import type { DockerHost } from '../src/docker/containers/docker-host.js';
import { isOfOneAgent } from '../src/docker/containers/openclaw-config.js';
import type { RuntimeImage } from '../src/docker/containers/runtime-images.js';
import {
  dockerActivities,
  dockerCalls,
  inTurn,
  makerHere,
  runHere,
  withinCallBudget,
} from './docker-activity.js';
import { withinBudget } from './time-budget.js';

/** How long an agent is given to end by itself before it is killed. */
const STOP_GRACE_SECONDS = 10;

/** A pull of some gigabytes over a slow line. */
const PULL_MS = 20 * 60_000;

/** Its parent goes on running meanwhile. */
const COPY_MS = 30 * 60_000;

/** A minute longer than the longest start. */
const READY_MS = 6 * 60_000;

export interface ContainerActivityDependencies {
  readonly clones: CloneMemories;
  readonly docker: DockerHost;
  readonly specs: RuntimeStore;
  readonly volumes: AgentVolumeStore;
  readonly memorySizes: Pick<MemorySizes, 'requireRoom'>;
  readonly turns: HostTurns;
  readonly progress: StartProgress;
}

/**
 * What only the worker beside a Docker daemon can do. Every one of them may run again after it
 * happened and nobody heard: it adopts what is there.
 */
export function createContainerActivities(dependencies: ContainerActivityDependencies) {
  const { clones, docker, specs, turns, progress, volumes } = dependencies;

  return {
    ...dockerActivities({
      async ensureImage(agent: AgentRef) {
        const image = await specs.imageOf(agent);
        const { version } = await obtainImage(dependencies, agent, image);
        await specs.recordImage(agent, image, version);
      },
      /**
       * Makes the first volume of a clone, as a copy of its parent's, which goes on running. What an
       * earlier provisioning has left of such a copy goes.
       */
      async copyMemory(agent: AgentRef) {
        const original = await clones.originalOf(agent);
        const spec = await specs.specOf(agent);
        const [name, madeBy] = [volumeName(spec), makerHere()];
        const others = (await volumes.of(agent)).filter((each) => each.madeBy !== madeBy);
        await docker.volumes.remove(agent.agentId, others);
        await docker.volumes.findOwn(spec, madeBy);
        await volumes.name(agent, { name, madeBy });
        await inTurn(turns.copies, agent, () =>
          withinBudget("Copying its parent's memory", COPY_MS, (signal) =>
            docker.volumes.copy(spec, { ...original, leavesOut: isOfOneAgent }, madeBy, signal),
          ),
        );
        await clones.recordCopied(agent, madeBy);
      },
      /** Waits without a turn: an agent that is long in coming up keeps none from others. */
      async awaitReady(agent: AgentRef) {
        const { containers } = docker;
        const gateway = await specs.gatewayOf(agent);
        await withinBudget('Its start', READY_MS, (signal) =>
          awaitReady(containers, progress, agent.agentId, { ...gateway, signal }),
        );
      },
    }),

    ...dockerCalls(turns.calls, {
      createNetwork: async (agent: AgentRef) => docker.networks.ensure(await specs.specOf(agent)),
      /** Ports of no use to this agent, since networks of others have the subnets that go with them. */
      takenPlaces: async ({ agentId }: AgentRef) =>
        specs.placesIn(await docker.networks.takenSubnets(agentId)),
      /**
       * Adopts or makes the agent's first volume: that of a provisioning, and of nothing else.
       *
       * @returns `to-be-copied` for that of a clone, which `copyMemory` makes.
       */
      async createVolume(agent: AgentRef): Promise<'there' | 'to-be-copied'> {
        const spec = await specs.specOf(agent);
        const found = await docker.volumes.find(spec);
        if (await clones.isToBeCopied(agent, found)) return 'to-be-copied';
        const madeBy = found?.madeBy ?? makerHere();
        await volumes.name(agent, { name: volumeName(spec), madeBy });
        await docker.volumes.ensure(spec, madeBy);
        return 'there';
      },
      /** Fails when the agent's memory is not there: what brings it up never makes one. */
      requireVolume: async (agent: AgentRef) => docker.volumes.require(await specs.memoryOf(agent)),
      createContainer: (agent: AgentRef) => createContainer(dependencies, agent),
      stopContainer: ({ agentId }: AgentRef) => docker.containers.stop(agentId, STOP_GRACE_SECONDS),
      removeContainer: ({ agentId }: AgentRef) => docker.containers.remove(agentId),
      removeNetwork: ({ agentId }: AgentRef) => docker.networks.remove(agentId),
      /** Undoes `createVolume` of this run; a volume that was there before stays. */
      async undoVolume(agent: AgentRef) {
        const run = runHere();
        await docker.volumes.removeMadeIn(await specs.memoryOf(agent), (maker) =>
          maker.startsWith(`${run}/`),
        );
      },
      /** Removes all that operations have ever made for the agent. What else is there stays. */
      async removeVolume(agent: AgentRef) {
        const { agentId } = agent;
        const named = await volumes.of(agent);
        const stay = (await docker.volumes.remove(agentId, named)).map(({ name }) => name);
        await volumes.forget(
          agent,
          named.map(({ name }) => name),
        );
        if (stay.length === 0) return;
        Context.current().log.warn('volumes that are not known stay', { agentId, volumes: stay });
      },
    }),
  };
}

export type ContainerActivities = ReturnType<typeof createContainerActivities>;

/** Makes the agent's container, or finds it. */
export async function createContainer(
  { docker, specs }: ContainerActivityDependencies,
  agent: AgentRef,
): Promise<void> {
  const { id } = await docker.containers.ensure(await specs.specOf(agent));
  await specs.recordContainer(agent, id);
}

/** The image as it is in Docker, or else pulled, in the agent's turn. */
export async function obtainImage(
  { docker, turns }: ContainerActivityDependencies,
  agent: AgentRef,
  image: string,
): Promise<RuntimeImage> {
  const local = await withinCallBudget(() => docker.images.find(image));
  if (local) return local;
  return inTurn(turns.pulls, agent, () =>
    withinBudget('Pulling its image', PULL_MS, (signal) => docker.images.ensure(image, { signal })),
  );
}
