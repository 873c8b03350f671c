import type { ContainerState, ContainerStatus } from '../../docker/containers/container-view.js';
import type { AgentContainers } from '../../docker/containers/agent-containers.js';
import { gatewayHealth, type ProbeResult } from '../../docker/containers/gateway-probe.js';
import type { Observation } from './observation.js';
import type { StartProgress } from './start-progress.js';
import type { DeathCause } from '../../types/watchdog.js';

/** Spec 8: a probe's timeout. */
const PROBE_TIMEOUT_MS = 5_000;

/** It has not ended, and does not run as it should (spec 3). Nobody of ours brings that about. */
const UNEXPECTED: readonly ContainerStatus[] = ['paused', 'restarting', 'dead'];

/** What an observation asks of Docker. */
export interface Eyes {
  readonly containers: Pick<AgentContainers, 'inspect'>;
  readonly progress: Pick<StartProgress, 'isStarting'>;
}

/**
 * Looks at an agent's container and asks its gateway whether it is alive.
 *
 * @param timeoutMs how long the gateway may take to answer.
 */
export async function observeAgent(
  eyes: Eyes,
  agentId: string,
  port: number,
  timeoutMs: number = PROBE_TIMEOUT_MS,
): Promise<Observation> {
  const container = await eyes.containers.inspect(agentId);
  const observedAt = new Date().toISOString();
  if (container?.status !== 'running') return unwell(eyes, container, undefined, observedAt);
  const probe = await gatewayHealth(port, { timeoutMs });
  return probe.healthy ? healthy(observedAt) : unwell(eyes, container, probe, observedAt);
}

/**
 * The same of an agent that was well: as long as its gateway answers, nothing else is asked. That
 * its container ends is heard from Docker.
 */
export async function observeHealthyAgent(
  eyes: Eyes,
  agentId: string,
  port: number,
): Promise<Observation> {
  const observedAt = new Date().toISOString();
  const probe = await gatewayHealth(port, { timeoutMs: PROBE_TIMEOUT_MS });
  if (probe.healthy) return healthy(observedAt);
  return unwell(eyes, await eyes.containers.inspect(agentId), probe, observedAt);
}

function healthy(observedAt: string): Observation {
  return { health: 'healthy', reason: null, observedAt };
}

async function unwell(
  { progress }: Eyes,
  container: ContainerState | undefined,
  probe: ProbeResult<unknown> | undefined,
  observedAt: string,
): Promise<Observation> {
  if (!container) {
    return { health: 'stopped', reason: 'The container is gone', death: 'gone', observedAt };
  }
  if (UNEXPECTED.includes(container.status)) {
    return { health: 'unhealthy', reason: `The container is ${container.status}`, observedAt };
  }
  if (container.status !== 'running' || !probe) {
    const death = deathOf(container);
    return { health: 'stopped', reason: endOf(container), death, observedAt };
  }
  const reason = probe.reachable
    ? `The gateway answers its health check with ${probe.status}`
    : `The gateway does not answer its health check: ${probe.reason}`;
  const isStarting = await progress.isStarting(container);
  const health = isStarting ? 'starting' : 'unhealthy';
  return { health, reason, observedAt };
}

/** How a container came to its end, in a sentence. */
export function endOf(container: ContainerState): string {
  if (container.oomKilled) return 'The container ran out of memory';
  return container.exitCode === undefined
    ? `The container is ${container.status}`
    : `The container ended with exit code ${container.exitCode}`;
}

/** Exit codes above this one tell the signal that ended the process. */
const SIGNAL_BASE = 128;

/** How a container that has ended came to that, as far as it shows. */
export function deathOf(container: ContainerState): DeathCause {
  if (container.oomKilled) return 'oom';
  return (container.exitCode ?? 0) > SIGNAL_BASE ? 'kill' : 'exit';
}
