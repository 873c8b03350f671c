import { setTimeout as delay } from 'node:timers/promises';
import type { AgentContainers } from '../../docker/containers/agent-containers.js';
import type { ContainerState } from '../../docker/containers/container-view.js';
import { gatewayReady } from '../../docker/containers/gateway-probe.js';
import { endOf } from './observe-agent.js';
import { STARTUP_LIMIT_MS, runningForMs, type StartProgress } from './start-progress.js';

/** The container ended, or did not become ready in the time that a start is given. */
export class AgentNotReadyError extends Error {
  override readonly name = 'AgentNotReadyError';
}

export interface Gateway {
  readonly port: number;
  readonly gatewayToken: string;
  readonly signal: AbortSignal;
}

/**
 * Between two polls: from 50 ms to the 2 s of the contract (section 8), a twentieth of the time
 * waited so far. So no agent is told as ready later than 5 % after it was.
 */
const FIRST_POLL_MS = 50;
const LAST_POLL_MS = 2_000;
const SHARE_OF_WAIT = 1 / 20;

/** Who does nothing for so long is in nobody's way. */
const IDLE_MS = 5_000;

/**
 * Waits until the agent's gateway takes work. What makes progress is waited for beyond the 60 s of
 * the contract.
 *
 * @throws AgentNotReadyError
 */
export async function awaitReady(
  containers: AgentContainers,
  progress: StartProgress,
  agentId: string,
  gateway: Gateway,
): Promise<void> {
  for await (const container of whileNotReady(containers, agentId, gateway)) {
    if (!container) throw new AgentNotReadyError('The container is gone');
    if (container.status !== 'running') throw new AgentNotReadyError(endOf(container));
    if (!(await progress.isStarting(container))) {
      const seconds = Math.round(runningForMs(container) / 1_000);
      throw new AgentNotReadyError(`The agent was not ready within ${seconds} s of its start`);
    }
  }
}

/**
 * Waits as long as a start uses the host: until the agent is ready, has ended or does nothing, and
 * 60 s at most. Whether the start has failed is not judged here.
 */
export async function whileStarting(
  containers: AgentContainers,
  progress: StartProgress,
  agentId: string,
  gateway: Gateway,
): Promise<void> {
  const began = performance.now();
  for await (const container of whileNotReady(containers, agentId, gateway)) {
    if (container?.status !== 'running') return;
    if (performance.now() - began > STARTUP_LIMIT_MS) return;
    if ((await progress.idleForMs(container)) > IDLE_MS) return;
  }
}

/** The container as it is after each poll that found its gateway not ready. */
async function* whileNotReady(
  containers: AgentContainers,
  agentId: string,
  { port, gatewayToken: token, signal }: Gateway,
): AsyncGenerator<ContainerState | undefined> {
  const began = performance.now();
  for (;;) {
    const probe = await gatewayReady(port, { timeoutMs: LAST_POLL_MS, token, signal });
    if (probe.ready) return;
    signal.throwIfAborted();
    const probed = performance.now();
    yield await containers.inspect(agentId);
    const pause = Math.min(Math.max((probed - began) * SHARE_OF_WAIT, FIRST_POLL_MS), LAST_POLL_MS);
    await delay(Math.max(probed + pause - performance.now(), 0), undefined, { signal });
  }
}
