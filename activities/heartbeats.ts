import { Context } from '@temporalio/activity';
import type { AgentRef } from '../src/types/agent-ref.js';
import type { HostLimiters } from '../src/agents/watchdog/host-limiters.js';
import type { HeartbeatSender } from '../src/agents/heartbeat/heartbeat-sender.js';
import { asApplicationFailure } from './failures.js';

/** Creates the activities that choose a heartbeat's agents. Run as local activities: short and idempotent. */
export function createHeartbeatRecordActivities(sender: HeartbeatSender) {
  return {
    beginHeartbeat: sender.begin.bind(sender),
    runningAgents: sender.runningAgents.bind(sender),
  };
}

/** Milliseconds that a heartbeat waits for its turn before it is dropped (`workflows/retries.ts`). */
const MAX_WAIT_MS = 5 * 60_000;

/**
 * Creates the activities of the worker on the agent's host, where the agent's gateway listens on loopback.
 */
export function createHeartbeatActivities(
  sender: Pick<HeartbeatSender, 'send'>,
  limiters: Pick<HostLimiters, 'turns'>,
) {
  return {
    /** Sends the heartbeat in the turn of the agent's owner: agents that hang do not block other owners. */
    sendHeartbeat: (agent: AgentRef) =>
      asApplicationFailure(() => {
        const { cancellationSignal } = Context.current();
        const signal = AbortSignal.any([cancellationSignal, AbortSignal.timeout(MAX_WAIT_MS)]);
        const caller = { owner: agent.userId, signal };
        return limiters.turns.run(caller, () => sender.send(agent, cancellationSignal));
      }),
  };
}

export type HeartbeatRecordActivities = ReturnType<typeof createHeartbeatRecordActivities>;
export type HeartbeatActivities = ReturnType<typeof createHeartbeatActivities>;
