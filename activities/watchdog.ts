import { setTimeout as delay } from 'node:timers/promises';
import { Context } from '@temporalio/activity';
import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import type { AgentRef } from '../src/types/agent-ref.js';
import { AgentGoneError } from '../src/agents/agents/agents.js';
import type { DockerAbsences } from '../src/agents/watchdog/docker-absence.js';
import { recordCrashDetails } from '../src/agents/logs/keep-crash.js';
import { PortCache, type AgentPorts } from '../src/agents/agents/agent-ports.js';
import type { WatchdogStore } from '../src/agents/watchdog/watchdog-store.js';
import { observationLimiter } from '../src/agents/watchdog/observation-limiter.js';
import type { ContainerHealth, Observation } from '../src/agents/watchdog/observation.js';
import { observeAgent, observeHealthyAgent } from '../src/agents/watchdog/observe-agent.js';
import { jittered } from '../src/lib/jitter.js';
import type { ContainerActivityDependencies } from './containers.js';
import { dockerCalls, heartbeating, isOfRepair, withinRefusals } from './docker-activity.js';
import { LastingRefusalError } from './time-budget.js';
import { asApplicationFailure } from './failures.js';

/** Milliseconds to the next probe while a container starts, and while Docker does not answer. */
const STARTING_DELAY_MS = 2_000;
const DOCKER_AWAY_DELAY_MS = 10_000;

/** Milliseconds that a gateway has to answer the second probe after it failed its health check. */
const SECOND_PROBE_MS = 2_000;

export interface WatchdogActivityDependencies extends ContainerActivityDependencies {
  readonly ports: Pick<AgentPorts, 'of'>;
  readonly absences: Pick<DockerAbsences, 'startOf'>;
  readonly states: Pick<WatchdogStore, 'recordCrash' | 'recordSeen'>;
  /** Milliseconds between two probes of a healthy agent. */
  readonly checkIntervalMs: number;
  /** Milliseconds between two probes of an agent that is not healthy. */
  readonly degradedCheckIntervalMs: number;
}

/** Creates the activities with which the watchdog observes agents and treats unhealthy ones. */
export function createWatchdogActivities(dependencies: WatchdogActivityDependencies) {
  const { absences, docker, specs, states, limiters, progress } = dependencies;
  const { checkIntervalMs, degradedCheckIntervalMs, ports } = dependencies;
  const observer = { absences, containers: docker.containers, progress };
  const limiter = observationLimiter();
  const portCache = new PortCache(ports);

  return {
    /**
     * Returns only when the agent's health is no longer `last`. Until then the attempt fails and is retried
     * after the interval, which leaves no event in the workflow's history.
     */
    async watchHealth(agent: AgentRef, last: ContainerHealth | null): Promise<Observation> {
      const seen = await (last === 'healthy' ? observeHealthy(agent) : observe(agent));
      // An agent that was healthy and no longer answers is not starting.
      if (seen.health === 'starting' && last !== 'healthy') throw unchanged(STARTING_DELAY_MS);
      if (seen.health === last) {
        states.recordSeen(agent, seen);
        throw unchanged(checkIntervalMs);
      }
      return seen;
    },

    observeAgent: (agent: AgentRef): Promise<Observation> =>
      heartbeating(() => observe(agent, SECOND_PROBE_MS)),

    /** Probes every few seconds, and returns when the agent's health is no longer `last`. */
    watchDegraded: (agent: AgentRef, last: ContainerHealth | null): Promise<Observation> =>
      heartbeating(async () => {
        const { cancellationSignal } = Context.current();
        for (;;) {
          const seen = await observe(agent);
          if (seen.health !== last && seen.health !== 'starting') return seen;
          states.recordSeen(agent, seen);
          await delay(jittered(degradedCheckIntervalMs), undefined, { signal: cancellationSignal });
        }
      }),

    /** Records with a crash how the container ended and its last output. */
    recordCrash: (agent: AgentRef, transitionId: string): Promise<void> =>
      asApplicationFailure(() =>
        recordCrashDetails({ containers: docker.containers, specs, states }, agent, transitionId),
      ),

    ...dockerCalls(limiters.calls, {
      /** Kills the gateway, which is the container's process. A missing or ended gateway is no error. */
      killGateway: ({ agentId }: AgentRef) => docker.containers.kill(agentId),
    }),
  };

  async function observe(agent: AgentRef, timeoutMs?: number): Promise<Observation> {
    return observing(agent, async () => {
      const port = await ports.of(agent);
      return observeAgent(observer, agent.agentId, port, timeoutMs);
    });
  }

  /** Probes an agent that is expected to be healthy, as nearly all are: the cheapest probe. */
  async function observeHealthy(agent: AgentRef): Promise<Observation> {
    const { activityId, workflowExecution } = Context.current().info;
    const watch = `${workflowExecution?.runId}/${activityId}`;
    return observing(agent, async () => {
      const port = await portCache.of(agent, watch);
      return observeHealthyAgent(observer, agent.agentId, port);
    });
  }

  async function observing(
    { userId }: AgentRef,
    observe: () => Promise<Observation>,
  ): Promise<Observation> {
    try {
      return await withinRefusals(() => limiter.run({ owner: userId }, observe));
    } catch (error) {
      // No observation is possible any more, or Docker refuses one.
      const isRefused = error instanceof LastingRefusalError;
      if (isRefused && !isOfRepair()) return refused(error);
      const isFinal = isRefused || error instanceof AgentGoneError;
      if (isFinal) return asApplicationFailure(() => Promise.reject(error));
      // No observation was made: the last one stays valid, with its time.
      throw unchanged(DOCKER_AWAY_DELAY_MS, error);
    }
  }
}

export type WatchdogActivities = ReturnType<typeof createWatchdogActivities>;

/** Returns an unhealthy observation for an agent that Docker has refused to inspect for minutes. */
function refused({ message: reason }: LastingRefusalError): Observation {
  return { health: 'unhealthy', reason, observedAt: new Date().toISOString() };
}

/** The type of the failure that means "no change". */
export const UNCHANGED = 'Unchanged';

/** Creates the failure that reports no change; the next attempt probes again after this delay. */
export function unchanged(delayMs: number, cause?: unknown): ApplicationFailure {
  const failure = ApplicationFailure.create({
    message: cause instanceof Error ? cause.message : 'No change',
    type: cause === undefined ? UNCHANGED : 'NotObserved',
    category: ApplicationFailureCategory.BENIGN,
    nextRetryDelay: jittered(delayMs),
  });
  // The stack is useless here, and resolving it costs as much as the whole probe.
  failure.stack = '';
  return failure;
}
