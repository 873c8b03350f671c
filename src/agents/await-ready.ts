import { setTimeout as delay } from 'node:timers/promises';
import type { AgentContainers } from '../containers/agent-containers.js';
import { gatewayReady } from '../containers/gateway-probe.js';
import { STARTUP_LIMIT_MS, endOf, runningForMs } from './observe-agent.js';

/** The container ended, or did not become ready within 60 s of its start. */
export class AgentNotReadyError extends Error {
  override readonly name = 'AgentNotReadyError';
}

/**
 * Between two polls: from 50 ms to the 2 s of the contract (section 8), a twentieth of the time
 * waited so far. So no agent is told as ready later than 5 % after it was.
 */
const FIRST_POLL_MS = 50;
const LAST_POLL_MS = 2_000;
const SHARE_OF_WAIT = 1 / 20;

/**
 * Waits until the agent's gateway takes work.
 *
 * @throws AgentNotReadyError
 */
export async function awaitReady(
  containers: AgentContainers,
  agentId: string,
  gateway: { readonly port: number; readonly gatewayToken: string; readonly signal: AbortSignal },
): Promise<void> {
  const { port, gatewayToken, signal } = gateway;
  const began = performance.now();
  for (;;) {
    const probe = await gatewayReady(port, {
      timeoutMs: LAST_POLL_MS,
      token: gatewayToken,
      signal,
    });
    if (probe.ready) return;
    signal.throwIfAborted();
    const probed = performance.now();
    const container = await containers.inspect(agentId);
    if (!container) throw new AgentNotReadyError('The container is gone');
    if (container.status !== 'running') throw new AgentNotReadyError(endOf(container));
    if (runningForMs(container) > STARTUP_LIMIT_MS) {
      throw new AgentNotReadyError(
        `The agent was not ready within ${STARTUP_LIMIT_MS / 1_000} s of its start`,
      );
    }
    const pause = Math.min(Math.max((probed - began) * SHARE_OF_WAIT, FIRST_POLL_MS), LAST_POLL_MS);
    await delay(Math.max(probed + pause - performance.now(), 0), undefined, { signal });
  }
}
