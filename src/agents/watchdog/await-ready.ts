import { setTimeout as delay } from 'node:timers/promises';
import type { AgentContainers } from '../../docker/containers/agent-containers.js';
import type { ContainerState } from '../../docker/containers/container-view.js';
import { gatewayReady } from '../../docker/containers/gateway-probe.js';
import { describeEnd } from './observe-agent.js';
import { STARTUP_LIMIT_MS, runningForMs, type StartProgress } from './start-progress.js';

export class AgentNotReadyError extends Error {
  override readonly name = 'AgentNotReadyError';
}

export interface Gateway {
  readonly port: number;
  readonly gatewayToken: string;
  /** True if the agent's configuration has a channel. */
  readonly hasChannels: boolean;
  readonly signal: AbortSignal;
}

/**
 * Milliseconds between polls: a twentieth of the time waited so far, between 50 ms and the 2 s of spec 8.
 * Readiness is thus reported at most 5 % late.
 */
const FIRST_POLL_MS = 50;
const LAST_POLL_MS = 2_000;
const SHARE_OF_WAIT = 1 / 20;

/** Idle milliseconds after which a starting agent no longer counts as using the host. */
const IDLE_MS = 5_000;

/** Waits until the gateway is ready, with progress longer than spec 8's 60 s. @throws AgentNotReadyError */
export async function awaitReady(
  containers: AgentContainers,
  progress: StartProgress,
  agentId: string,
  gateway: Gateway,
): Promise<void> {
  for await (const container of whileNotReady(containers, agentId, gateway)) {
    if (!container) throw new AgentNotReadyError('The container no longer exists');
    if (container.status !== 'running') throw new AgentNotReadyError(describeEnd(container));
    if (!(await progress.isStarting(container))) {
      const seconds = Math.round(runningForMs(container) / 1_000);
      throw new AgentNotReadyError(`The agent was not ready within ${seconds} s of its start`);
    }
  }
}

/** Waits while a start uses the host: until the agent is ready, has exited or is idle, 60 s at most. */
export async function waitWhileStarting(
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

async function* whileNotReady(
  containers: AgentContainers,
  agentId: string,
  { port, gatewayToken: token, hasChannels, signal }: Gateway,
): AsyncGenerator<ContainerState | undefined> {
  const began = performance.now();
  for (;;) {
    const bounds = { timeoutMs: LAST_POLL_MS, token, hasChannels, signal };
    const probe = await gatewayReady(port, bounds);
    if (probe.ready) return;
    signal.throwIfAborted();
    const probed = performance.now();
    yield await containers.inspect(agentId);
    const pause = Math.min(Math.max((probed - began) * SHARE_OF_WAIT, FIRST_POLL_MS), LAST_POLL_MS);
    await delay(Math.max(probed + pause - performance.now(), 0), undefined, { signal });
  }
}
