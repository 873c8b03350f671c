import type { AgentRef } from '../src/types/agent-ref.js';
import type { ReleaseStore } from '../src/agents/operations/release-store.js';
import { obtainImage, type ContainerActivityDependencies } from './containers.js';
import {
  dockerActivities,
  dockerCalls,
  runForOwner,
  currentMaker,
  withinCallBudget,
} from './docker-activity.js';
import { withinBudget } from './time-budget.js';

/** Milliseconds for copying the memory, during which the agent is down. */
const COPY_MS = 30 * 60_000;

export interface ReleaseActivityDependencies extends ContainerActivityDependencies {
  readonly releases: ReleaseStore;
}

/** Creates the activities that replace an agent's container or memory. Each is idempotent. */
export function createReleaseActivities(dependencies: ReleaseActivityDependencies) {
  const { docker, releases, specs, limiters, volumes } = dependencies;

  return {
    ...dockerActivities({
      /** Finds or pulls the image of an update; returns false if the agent already runs that image. */
      async findImage(agent: AgentRef, operationId: string) {
        const { image } = await releases.replacementOf(agent, operationId);
        if (image === undefined || image === (await specs.imageOf(agent))) return false;
        await obtainImage(dependencies, agent, image);
        return true;
      },

      /** Makes the agent's new volume for the operation: empty, or a copy. */
      async makeVolume(agent: AgentRef, operationId: string) {
        const { volume, copyOf } = await releases.replacementOf(agent, operationId);
        const spec = { ...(await specs.specOf(agent)), volume };
        const madeBy = currentMaker();
        await withinCallBudget(() => docker.volumes.findOwn(spec, madeBy));
        await volumes.name(agent, { name: volume, madeBy });
        if (copyOf === undefined) return withinCallBudget(() => docker.volumes.make(spec, madeBy));
        return runForOwner(limiters.copies, agent, () =>
          withinBudget('Copying its memory', COPY_MS, (signal) =>
            docker.volumes.copy(spec, { ...agent, volume: copyOf }, madeBy, signal),
          ),
        );
      },
    }),

    ...dockerCalls(limiters.calls, {
      /** Keeps the stopped container, so that the agent can be rolled back to it. */
      retainContainer: ({ agentId }: AgentRef) => docker.containers.retain(agentId),

      restoreContainer: ({ agentId }: AgentRef) => docker.containers.restore(agentId),

      /** Removes the volumes that the agent's operations made and that are no longer used. */
      async removeLeftovers(agent: AgentRef) {
        const obsolete = (await volumes.of(agent)).filter((volume) => volume.obsolete);
        await docker.volumes.remove(agent.agentId, obsolete);
        await volumes.forget(
          agent,
          obsolete.map(({ name }) => name),
        );
      },
    }),
  };
}

export type ReleaseActivities = ReturnType<typeof createReleaseActivities>;

/** Creates the activities with which a release writes to the database. Run as local activities. */
export function createReleaseRecordActivities(releases: ReleaseStore) {
  return {
    recordUpdate: releases.recordUpdate.bind(releases),
    beginRelease: releases.beginRelease.bind(releases),
    keepRelease: releases.keepRelease.bind(releases),
    rollBackRelease: releases.rollBackRelease.bind(releases),
  };
}

export type ReleaseRecordActivities = ReturnType<typeof createReleaseRecordActivities>;
