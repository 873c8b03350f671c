import type { ContainerState, ContainerStatus } from '../../docker/containers/container-view.js';
import type { AgentContainers } from '../../docker/containers/agent-containers.js';
import { gatewayHealth, type ProbeResult } from '../../docker/containers/gateway-probe.js';
import type { DockerAbsences } from './docker-absence.js';
import type { Observation } from './observation.js';
import type { StartProgress } from './start-progress.js';
import type { DeathCause } from '../../types/watchdog.js';

/** Milliseconds (spec 8). */
const PROBE_TIMEOUT_MS = 5_000;

/** States in which a container has not exited but does not run properly (spec 3), never by the platform. */
const UNEXPECTED: readonly ContainerStatus[] = ['paused', 'restarting', 'dead'];

export interface ObservationDependencies {
  readonly containers: Pick<AgentContainers, 'inspect'>;
  readonly progress: Pick<StartProgress, 'isStarting'>;
  /** Without it, no end counts as within an absence of Docker. */
  readonly absences?: Pick<DockerAbsences, 'startOf'>;
}

export async function observeAgent(
  observer: ObservationDependencies,
  agentId: string,
  port: number,
  timeoutMs: number = PROBE_TIMEOUT_MS,
): Promise<Observation> {
  const container = await observer.containers.inspect(agentId);
  const observedAt = new Date().toISOString();
  if (container?.status !== 'running') return unwell(observer, container, undefined, observedAt);
  const probe = await gatewayHealth(port, { timeoutMs });
  return probe.healthy ? healthy(observedAt) : unwell(observer, container, probe, observedAt);
}

/** Observes an agent that was healthy: only probes the gateway, because Docker reports exits separately. */
export async function observeHealthyAgent(
  observer: ObservationDependencies,
  agentId: string,
  port: number,
): Promise<Observation> {
  const observedAt = new Date().toISOString();
  const probe = await gatewayHealth(port, { timeoutMs: PROBE_TIMEOUT_MS });
  if (probe.healthy) return healthy(observedAt);
  return unwell(observer, await observer.containers.inspect(agentId), probe, observedAt);
}

function healthy(observedAt: string): Observation {
  return { health: 'healthy', reason: null, observedAt };
}

async function unwell(
  { absences, progress }: ObservationDependencies,
  container: ContainerState | undefined,
  probe: ProbeResult<unknown> | undefined,
  observedAt: string,
): Promise<Observation> {
  if (!container) {
    return {
      health: 'stopped',
      reason: 'The container no longer exists',
      death: 'gone',
      observedAt,
    };
  }
  if (UNEXPECTED.includes(container.status)) {
    return { health: 'unhealthy', reason: `The container is ${container.status}`, observedAt };
  }
  if (container.status !== 'running' || !probe) {
    const death = deathCauseOf(container);
    const endedAt = Date.parse(container.finishedAt ?? '');
    const from = absences?.startOf(endedAt);
    const away = from !== undefined && { away: { from, endedAt } };
    return { health: 'stopped', reason: describeEnd(container), death, ...away, observedAt };
  }
  const reason = probe.reachable
    ? `The gateway answers its health check with ${probe.status}`
    : `The gateway does not answer its health check: ${probe.reason}`;
  const isStarting = await progress.isStarting(container);
  const health = isStarting ? 'starting' : 'unhealthy';
  return { health, reason, observedAt };
}

export function describeEnd(container: ContainerState): string {
  if (container.oomKilled) return 'The container ran out of memory';
  return container.exitCode === undefined
    ? `The container is ${container.status}`
    : `The container ended with exit code ${container.exitCode}`;
}

/** Exit codes above this value are 128 plus the signal that ended the process. */
const SIGNAL_BASE = 128;

export function deathCauseOf(container: ContainerState): DeathCause {
  if (container.oomKilled) return 'oom';
  return (container.exitCode ?? 0) > SIGNAL_BASE ? 'kill' : 'exit';
}
