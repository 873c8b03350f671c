import { setTimeout as delay } from 'node:timers/promises';
import { Context } from '@temporalio/activity';
import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import type { AgentRef } from '../src/types/agent-ref.js';
import { AgentGoneError } from '../src/agents/agents/agents.js';
import { keepCrash } from '../src/agents/logs/keep-crash.js';
import { PortCache } from '../src/agents/operations/port-cache.js';
import { observationLimit } from '../src/agents/watchdog/observation-limit.js';
import type { ContainerHealth, Observation } from '../src/agents/watchdog/observation.js';
import { observeAgent, observeHealthyAgent } from '../src/agents/watchdog/observe-agent.js';
import { jittered } from '../src/lib/jitter.js';
import type { ContainerActivityDependencies } from './containers.js';
import { dockerCalls, heartbeating, isOfRepair, withinRefusals } from './docker-activity.js';
import { LastingRefusalError } from './time-budget.js';
import { asApplicationFailure } from './failures.js';

/** How soon to look again while a container starts, and while Docker does not answer. */
const STARTING_DELAY_MS = 2_000;
const DOCKER_AWAY_DELAY_MS = 10_000;

/** A gateway that has just failed its health check gets this long to answer a second look. */
const SECOND_LOOK_MS = 2_000;

export interface WatchdogActivityDependencies extends ContainerActivityDependencies {
  /** Milliseconds between two checks of a healthy agent. */
  readonly checkIntervalMs: number;
  /** Milliseconds between two checks of an agent that is not well. */
  readonly degradedCheckIntervalMs: number;
}

/** How the watchdog sees an agent, and what it does to one that is not well. */
export function createWatchdogActivities(dependencies: WatchdogActivityDependencies) {
  const { docker, specs, turns, progress, checkIntervalMs, degradedCheckIntervalMs } = dependencies;
  const eyes = { containers: docker.containers, progress };
  const limit = observationLimit();
  const ports = new PortCache(specs);

  return {
    /**
     * Returns only when the agent's health is not `last` any more. As long as it is, the attempt
     * fails and is retried after the interval: that leaves no event in the workflow's history.
     */
    async watchHealth(agent: AgentRef, last: ContainerHealth | null): Promise<Observation> {
      const seen = await (last === 'healthy' ? observeHealthy(agent) : observe(agent));
      // Who was well and does not answer any more is not starting.
      if (seen.health === 'starting' && last !== 'healthy') throw unchanged(STARTING_DELAY_MS);
      if (seen.health === last) {
        specs.recordSeen(agent, seen);
        throw unchanged(checkIntervalMs);
      }
      return seen;
    },

    /** What is to be seen of the agent now. */
    observeAgent: (agent: AgentRef): Promise<Observation> =>
      heartbeating(() => observe(agent, SECOND_LOOK_MS)),

    /** Looks every few seconds, and returns when the agent's health is not `last` any more. */
    watchDegraded: (agent: AgentRef, last: ContainerHealth | null): Promise<Observation> =>
      heartbeating(async () => {
        const { cancellationSignal } = Context.current();
        for (;;) {
          const seen = await observe(agent);
          if (seen.health !== last && seen.health !== 'starting') return seen;
          specs.recordSeen(agent, seen);
          await delay(jittered(degradedCheckIntervalMs), undefined, { signal: cancellationSignal });
        }
      }),

    /** Keeps with a crash how the container ended and what it wrote last. */
    recordCrash: (agent: AgentRef, transitionId: string): Promise<void> =>
      asApplicationFailure(() =>
        keepCrash({ containers: docker.containers, specs }, agent, transitionId),
      ),

    ...dockerCalls(turns.calls, {
      /** Kills the gateway, which is what the container runs. Missing or ended is well. */
      killGateway: ({ agentId }: AgentRef) => docker.containers.kill(agentId),
    }),
  };

  async function observe(agent: AgentRef, timeoutMs?: number): Promise<Observation> {
    return observing(agent, async () => {
      const port = await specs.portOf(agent);
      return observeAgent(eyes, agent.agentId, port, timeoutMs);
    });
  }

  /** The cheapest look, at an agent that is expected to be well: so nearly all of them are. */
  async function observeHealthy(agent: AgentRef): Promise<Observation> {
    const { activityId, workflowExecution } = Context.current().info;
    const watch = `${workflowExecution?.runId}/${activityId}`;
    return observing(agent, async () => {
      const port = await ports.of(agent, watch);
      return observeHealthyAgent(eyes, agent.agentId, port);
    });
  }

  async function observing(
    { userId }: AgentRef,
    observe: () => Promise<Observation>,
  ): Promise<Observation> {
    try {
      return await withinRefusals(() => limit(userId, observe));
    } catch (error) {
      // Nothing will be seen of it any more, or Docker will not let it be seen.
      const isRefused = error instanceof LastingRefusalError;
      if (isRefused && !isOfRepair()) return refused(error);
      const isFinal = isRefused || error instanceof AgentGoneError;
      if (isFinal) return asApplicationFailure(() => Promise.reject(error));
      // Nothing was seen: the last observation stands, with its time.
      throw unchanged(DOCKER_AWAY_DELAY_MS, error);
    }
  }
}

export type WatchdogActivities = ReturnType<typeof createWatchdogActivities>;

/** What cannot be looked at for minutes is not well: it is told, and dealt with like that. */
function refused({ message: reason }: LastingRefusalError): Observation {
  return { health: 'unhealthy', reason, observedAt: new Date().toISOString() };
}

/** The type of the failure that says: all is as it was. */
export const UNCHANGED = 'Unchanged';

/** Nothing is to be told; look again after so many milliseconds. */
export function unchanged(delayMs: number, cause?: unknown): ApplicationFailure {
  const failure = ApplicationFailure.create({
    message: cause instanceof Error ? cause.message : 'No change',
    type: cause === undefined ? UNCHANGED : 'NotObserved',
    category: ApplicationFailureCategory.BENIGN,
    nextRetryDelay: jittered(delayMs),
  });
  // Where it was made says nothing, and to look it up costs as much as the whole check.
  failure.stack = '';
  return failure;
}
