import { Context } from '@temporalio/activity';
import type { AgentRef } from '../src/types/agent-ref.js';
import { awaitReady } from '../src/agents/watchdog/await-ready.js';
import type { HostLimiters } from '../src/agents/watchdog/host-limiters.js';
import type { MemorySizes } from '../src/agents/memory/memory-sizes.js';
import type { AgentVolumeStore } from '../src/agents/memory/agent-volume-store.js';
import type { ContainerSpecs } from '../src/agents/operations/container-specs.js';
import type { StartProgress } from '../src/agents/watchdog/start-progress.js';
import type { CloneStore } from '../src/agents/clones/clone-store.js';
import { volumeName, type AgentContainerSpec } from '../src/docker/containers/container-spec.js';
import type { DockerHost } from '../src/docker/containers/docker-host.js';
import { isOfOneAgent } from '../src/docker/containers/openclaw-config.js';
import { skillList } from '../src/docker/containers/skill-files.js';
import { UnavailableError } from '../src/lib/errors.js';
import { tryParseJson } from '../src/lib/json.js';
import type { SkillRemoval } from '../src/workspace/skills/remove-skills.js';
import { readRefusal } from '../src/workspace/workspace-call.js';
import type { RuntimeImage } from '../src/docker/containers/runtime-images.js';
import {
  dockerActivities,
  dockerCalls,
  runForOwner,
  currentMaker,
  currentRunId,
  withinCallBudget,
} from './docker-activity.js';
import { withinBudget } from './time-budget.js';

/** Seconds that an agent has to end by itself before it is killed. */
const STOP_GRACE_SECONDS = 10;

/** Milliseconds for pulling a few gigabytes over a slow line. */
const PULL_MS = 20 * 60_000;

/** Milliseconds for copying a parent's memory; the parent keeps running. */
const COPY_MS = 30 * 60_000;

/** Milliseconds: a minute longer than the longest start. */
const READY_MS = 6 * 60_000;

const REMOVE_SKILLS_MS = 30_000;

export interface ContainerActivityDependencies {
  /** Loads the program of helper containers. */
  readonly helper: () => Promise<string>;
  readonly clones: Pick<CloneStore, 'isToBeCopied' | 'originalOf' | 'recordCopied'>;
  readonly docker: DockerHost;
  readonly specs: ContainerSpecs;
  readonly volumes: AgentVolumeStore;
  readonly memorySizes: Pick<MemorySizes, 'requireRoom'>;
  readonly limiters: HostLimiters;
  readonly progress: StartProgress;
}

/**
 * Creates the activities of the worker next to a Docker daemon. Each may run again after a success that was
 * not acknowledged: it adopts existing objects.
 */
export function createContainerActivities(dependencies: ContainerActivityDependencies) {
  const { clones, docker, specs, limiters, progress, volumes } = dependencies;

  return {
    ...dockerActivities({
      async ensureImage(agent: AgentRef) {
        const image = await specs.imageOf(agent);
        const { version } = await obtainImage(dependencies, agent, image);
        await specs.recordImage(agent, image, version);
      },
      /**
       * Makes the first volume of a clone as a copy of its parent's, while the parent keeps running. Removes
       * an incomplete copy that an earlier provisioning left.
       */
      async copyMemory(agent: AgentRef) {
        const original = await clones.originalOf(agent);
        const spec = await specs.specOf(agent);
        const [name, madeBy] = [volumeName(spec), currentMaker()];
        const others = (await volumes.of(agent)).filter((each) => each.madeBy !== madeBy);
        await docker.volumes.remove(agent.agentId, others);
        await docker.volumes.findOwn(spec, madeBy);
        await volumes.name(agent, { name, madeBy });
        await runForOwner(limiters.copies, agent, () =>
          withinBudget("Copying its parent's memory", COPY_MS, (signal) =>
            docker.volumes.copy(spec, { ...original, leavesOut: isOfOneAgent }, madeBy, signal),
          ),
        );
        await clones.recordCopied(agent, madeBy);
      },
      /** Waits outside the owner's turn: an agent that starts slowly does not block other agents. */
      async awaitReady(agent: AgentRef) {
        const { containers } = docker;
        const gateway = await specs.gatewayOf(agent);
        await withinBudget('Its start', READY_MS, (signal) =>
          awaitReady(containers, progress, agent.agentId, { ...gateway, signal }),
        );
      },
    }),

    ...dockerCalls(limiters.calls, {
      createNetwork: async (agent: AgentRef) => docker.networks.ensure(await specs.specOf(agent)),
      /** Ports that this agent cannot use, since networks of other agents occupy the matching subnets. */
      takenPlaces: async ({ agentId }: AgentRef) =>
        specs.placesIn(await docker.networks.takenSubnets(agentId)),
      /** Adopts or makes the agent's first volume, only for a provisioning; `copyMemory` makes a clone's. */
      async createVolume(agent: AgentRef): Promise<'there' | 'to-be-copied'> {
        const spec = await specs.specOf(agent);
        const found = await docker.volumes.find(spec);
        if (await clones.isToBeCopied(agent, found)) return 'to-be-copied';
        const madeBy = found?.madeBy ?? currentMaker();
        await volumes.name(agent, { name: volumeName(spec), madeBy });
        await docker.volumes.ensure(spec, madeBy);
        return 'there';
      },
      /** Fails when the agent's memory is missing: starting an agent never makes a volume. */
      requireVolume: async (agent: AgentRef) => docker.volumes.require(await specs.memoryOf(agent)),
      createContainer: (agent: AgentRef) => createContainer(dependencies, agent),
      stopContainer: ({ agentId }: AgentRef) => docker.containers.stop(agentId, STOP_GRACE_SECONDS),
      removeContainer: ({ agentId }: AgentRef) => docker.containers.remove(agentId),
      removeNetwork: ({ agentId }: AgentRef) => docker.networks.remove(agentId),
      /** Undoes `createVolume` of this run; an older volume stays. */
      async undoVolume(agent: AgentRef) {
        const run = currentRunId();
        await docker.volumes.removeMadeIn(await specs.memoryOf(agent), (maker) =>
          maker.startsWith(`${run}/`),
        );
      },
      /** Removes all volumes that operations ever made for the agent. Other volumes stay. */
      async removeVolume(agent: AgentRef) {
        const { agentId } = agent;
        const named = await volumes.of(agent);
        const stay = (await docker.volumes.remove(agentId, named)).map(({ name }) => name);
        await volumes.forget(
          agent,
          named.map(({ name }) => name),
        );
        if (stay.length === 0) return;
        Context.current().log.warn('unknown volumes are kept', { agentId, volumes: stay });
      },
    }),
  };
}

export type ContainerActivities = ReturnType<typeof createContainerActivities>;

/** Makes the agent's container, or finds it, and writes its files. @param known the agent's skills, if they were read. */
export async function createContainer(
  { docker, helper, specs }: ContainerActivityDependencies,
  agent: AgentRef,
  known?: Readonly<Record<string, string>>,
): Promise<void> {
  const [spec, skills] = await Promise.all([specs.specOf(agent), known ?? specs.skillsOf(agent)]);
  const { id, staleSkills } = await docker.containers.ensure({ ...spec, skills });
  if (staleSkills.length > 0) {
    const removal = { names: staleSkills, list: skillList(Object.keys(skills)) };
    await removeSkillsOf(docker, await helper(), spec, removal);
  }
  await specs.recordContainer(agent, id);
}

/** Removes skills from the volume of a stopped agent, by the helper that has the volume. */
async function removeSkillsOf(
  docker: DockerHost,
  program: string,
  spec: AgentContainerSpec,
  removal: SkillRemoval,
): Promise<void> {
  const { agentId, image, userId } = spec;
  const workspace = { agentId, image, userId, volume: volumeName(spec) };
  const answer = await docker.workspaces.call(
    program,
    workspace,
    { what: 'remove-skills', ...removal },
    // The agent's supervisor waits for this step, so that nothing replaces the volume.
    { signal: AbortSignal.timeout(REMOVE_SKILLS_MS), still: () => Promise.resolve() },
  );
  const refused = readRefusal(tryParseJson(answer));
  if (refused) throw new UnavailableError(`Skills could not be removed: ${refused.message}`);
}

/** Returns the agent's image from Docker, or pulls it in the agent's turn. */
export async function obtainImage(
  { docker, limiters }: ContainerActivityDependencies,
  agent: AgentRef,
  image: string,
): Promise<RuntimeImage> {
  const local = await withinCallBudget(() => docker.images.find(image));
  if (local) return local;
  return runForOwner(limiters.pulls, agent, () =>
    withinBudget('Pulling its image', PULL_MS, (signal) => docker.images.ensure(image, { signal })),
  );
}
