import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { AgentRef } from '../src/types/agent-ref.js';
import type { ContainerHealth, Observation } from '../src/agents/watchdog/observation.js';
import type { PastTransition, WatchdogMemory } from '../src/types/watchdog.js';
import type { AgentContainers } from '../src/docker/containers/agent-containers.js';
import type { AgentGuard } from '../src/agents/local-repair/agent-guard.js';
import type { ContainerActivities } from './containers.js';
import { dockerActivity, isOfRepair } from './docker-activity.js';
import type { ReleaseActivities } from './releases.js';
import type { StartActivities } from './starts.js';
import { UNCHANGED, unchanged, type WatchdogActivities } from './watchdog.js';

type Step = (agent: AgentRef, ...rest: never[]) => Promise<unknown>;

/** Starts the existing container of the last run, and changes nothing else. */
const STARTS_EXISTING = 'startExisting' satisfies keyof StartActivities;

type StepName = keyof (ContainerActivities & ReleaseActivities & StartActivities);

/** True for each step that changes an agent's container or its resources. */
const CHANGES: Readonly<Record<Exclude<StepName, typeof STARTS_EXISTING>, boolean>> = {
  ensureImage: false,
  findImage: false,
  takenPlaces: false,
  createNetwork: true,
  createVolume: true,
  copyMemory: true,
  makeVolume: true,
  requireVolume: false,
  createContainer: true,
  startContainer: true,
  awaitReady: false,
  stopContainer: true,
  retainContainer: true,
  restoreContainer: true,
  removeLeftovers: false,
  removeContainer: true,
  removeNetwork: true,
  undoVolume: true,
  removeVolume: true,
};
const CHANGING = new Set(Object.entries(CHANGES).flatMap(([name, does]) => (does ? [name] : [])));

/** Milliseconds until the next probe while the host repairs an agent by itself. */
const LOCAL_REPAIR_DELAY_MS = 2_000;

export interface Watching {
  readonly memory: WatchdogMemory;
  /** The last local change of the host that the supervisor has processed. */
  readonly lastApplied: string | undefined;
}

/** Serializes the steps of supervisors with the host's own repairs, by the names of the steps. */
export function guardSteps<T extends Readonly<Record<string, Step>>>(
  guard: AgentGuard,
  steps: T,
): T {
  const each = Object.entries(steps).map(([name, step]) => {
    if (name === STARTS_EXISTING) return [name, afterRepair(guard, step)];
    return [name, CHANGING.has(name) ? changing(guard, name, step) : step];
  });
  // Each wrapper has the signature of its step.
  return Object.fromEntries(each) as T;
}

function afterRepair(guard: AgentGuard, step: Step): Step {
  return (agent, ...rest) =>
    dockerActivity(() => {
      const { cancellationSignal } = Context.current();
      return guard.afterRepair(agent.agentId, cancellationSignal, () => step(agent, ...rest));
    });
}

function changing(guard: AgentGuard, name: string, step: Step): Step {
  return (agent, ...rest) =>
    dockerActivity(() => {
      const { agentId } = agent;
      const { cancellationSignal } = Context.current();
      const work = async () => {
        const answer = await step(agent, ...rest);
        if (name === 'startContainer') await guard.started(agentId);
        // The last step in an agent's life.
        if (name === 'removeVolume' || name === 'undoVolume') await guard.forget(agentId);
        return answer;
      };
      return isOfRepair()
        ? guard.repair(agentId, cancellationSignal, work)
        : guard.operation(agentId, work);
    });
}

/**
 * Reports local changes of the host to supervisors, instead of observations, until they have processed the
 * changes; and records for the host the agents that supervisors watch.
 */
export function guardWatchdog(
  guard: AgentGuard,
  containers: Pick<AgentContainers, 'inspect'>,
  watchdog: WatchdogActivities,
) {
  return {
    async watchHealth(
      agent: AgentRef,
      last: ContainerHealth | null,
      { memory, lastApplied }: Watching,
    ): Promise<Observation> {
      const glance = guard.lastStep(agent.agentId);
      return seen(agent, lastApplied, async () => {
        try {
          return await watchdog.watchHealth(agent, last);
        } catch (error) {
          const isWell = error instanceof ApplicationFailure && error.type === UNCHANGED;
          if (isWell && last === 'healthy' && memory.state === 'running') {
            await guard.watched(agent, memory, glance, () => containers.inspect(agent.agentId));
          }
          throw error;
        }
      });
    },
    observeAgent: (agent: AgentRef, lastApplied?: string): Promise<Observation> =>
      seen(agent, lastApplied, () => watchdog.observeAgent(agent)),
    watchDegraded: (
      agent: AgentRef,
      last: ContainerHealth | null,
      lastApplied?: string,
    ): Promise<Observation> => seen(agent, lastApplied, () => watchdog.watchDegraded(agent, last)),
    async recordCrash(
      agent: AgentRef,
      transitionId: string,
      memory: WatchdogMemory,
    ): Promise<void> {
      await guard.crashed(agent.agentId, memory);
      await watchdog.recordCrash(agent, transitionId);
    },
    killGateway: (agent: AgentRef, memory: WatchdogMemory): Promise<void> =>
      dockerActivity(() => {
        const { cancellationSignal } = Context.current();
        const kill = () => watchdog.killGateway(agent);
        return guard.repair(agent.agentId, cancellationSignal, kill, memory);
      }),
  };

  async function seen(
    { agentId }: AgentRef,
    lastApplied: string | undefined,
    observe: () => Promise<Observation>,
  ): Promise<Observation> {
    const observed = pastOf(agentId, lastApplied) ?? (await observe());
    // The observation may show a repair that began during the probe.
    return pastOf(agentId, lastApplied) ?? observed;
  }

  function pastOf(agentId: string, lastApplied: string | undefined): Observation | undefined {
    if (guard.isBusy(agentId)) throw unchanged(LOCAL_REPAIR_DELAY_MS);
    const past: readonly PastTransition[] = guard.unappliedTransitions(agentId, lastApplied);
    if (past.length === 0) return undefined;
    return { health: 'starting', reason: null, observedAt: new Date().toISOString(), past };
  }
}

export type GuardedWatchdog = ReturnType<typeof guardWatchdog>;
