import { Context } from '@temporalio/activity';
import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import type { AgentRef } from '../src/agents/agent-ref.js';
import type { AgentSpecs } from '../src/agents/agent-specs.js';
import { awaitReady } from '../src/agents/await-ready.js';
import type { ContainerHealth, Observation } from '../src/agents/observation.js';
import { observeAgent } from '../src/agents/observe-agent.js';
import type { DockerContainers } from '../src/containers/docker-containers.js';
import { telling } from './failures.js';
import { heartbeating } from './heartbeat.js';

/** How long an agent is given to end by itself before it is killed. */
const STOP_GRACE_SECONDS = 10;

/** How soon to look again while a container starts, and while the engine does not answer. */
const STARTING_DELAY_MS = 2_000;
const ENGINE_DELAY_MS = 10_000;

export interface ContainerActivityDependencies {
  readonly containers: DockerContainers;
  readonly specs: AgentSpecs;
  /** Milliseconds between two checks of a healthy agent. */
  readonly checkIntervalMs: number;
}

/**
 * What only the worker beside a Docker engine can do. Every one of them may run again after it
 * happened and nobody heard: it adopts what is there.
 */
export function createContainerActivities(dependencies: ContainerActivityDependencies) {
  const { containers, specs, checkIntervalMs } = dependencies;
  const engine = <T>(work: () => Promise<T>) => telling(() => heartbeating(work));

  return {
    ensureImage: (agent: AgentRef) =>
      engine(async () => {
        const { cancellationSignal } = Context.current();
        const image = await specs.imageOf(agent);
        const { version } = await containers.ensureImage(image, { signal: cancellationSignal });
        await specs.recordImage(agent, image, version);
      }),
    createNetwork: (agent: AgentRef) =>
      engine(async () => containers.ensureNetwork(await specs.specOf(agent))),
    createVolume: (agent: AgentRef) =>
      engine(async () => containers.ensureVolume(await specs.specOf(agent))),
    createContainer: (agent: AgentRef) =>
      engine(async () => {
        const { id } = await containers.ensureContainer(await specs.specOf(agent));
        await specs.recordContainer(agent, id);
      }),
    startContainer: (agent: AgentRef) =>
      engine(async () => {
        await containers.start(agent.agentId);
      }),
    awaitReady: (agent: AgentRef) =>
      engine(async () => {
        const { port, gatewayToken } = await specs.gatewayOf(agent);
        const { cancellationSignal } = Context.current();
        await awaitReady(containers, agent.agentId, {
          port,
          gatewayToken,
          signal: cancellationSignal,
        });
      }),
    stopContainer: (agent: AgentRef) =>
      engine(() => containers.stop(agent.agentId, STOP_GRACE_SECONDS)),
    removeContainer: (agent: AgentRef) => engine(() => containers.removeContainer(agent.agentId)),
    removeNetwork: (agent: AgentRef) => engine(() => containers.removeNetwork(agent.agentId)),
    removeVolume: (agent: AgentRef) => engine(() => containers.removeVolume(agent.agentId)),

    /**
     * Returns only when the agent's health is not `last` any more. As long as it is, the attempt
     * fails and is retried after the interval: that leaves no event in the workflow's history.
     */
    async watchHealth(agent: AgentRef, last: ContainerHealth | null): Promise<Observation> {
      const seen = await lookAt(agent);
      if (seen.health === 'starting') throw unchanged(STARTING_DELAY_MS);
      if (seen.health === last) {
        await specs.recordSeen(agent, seen);
        throw unchanged(checkIntervalMs);
      }
      return seen;
    },
  };

  async function lookAt(agent: AgentRef): Promise<Observation> {
    try {
      const { port } = await specs.gatewayOf(agent);
      return await observeAgent(containers, agent.agentId, port);
    } catch (error) {
      // Nothing was seen: the last observation stands, with its time.
      throw unchanged(ENGINE_DELAY_MS, error);
    }
  }
}

export type ContainerActivities = ReturnType<typeof createContainerActivities>;

function unchanged(nextRetryDelay: number, cause?: unknown): ApplicationFailure {
  return ApplicationFailure.create({
    message: cause instanceof Error ? cause.message : 'No change',
    type: cause === undefined ? 'Unchanged' : 'NotObserved',
    category: ApplicationFailureCategory.BENIGN,
    nextRetryDelay,
  });
}
