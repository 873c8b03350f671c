import { Context } from '@temporalio/activity';
import type { AgentRef } from '../src/agents/agent-ref.js';
import type { HeartbeatSender } from '../src/heartbeat/heartbeat-sender.js';
import { asApplicationFailure } from './failures.js';

/** Which agents a heartbeat asks. Run as local activities: short and idempotent. */
export function createHeartbeatRecordActivities(sender: HeartbeatSender) {
  return {
    beginHeartbeat: sender.begin.bind(sender),
    runningAgents: sender.runningAgents.bind(sender),
  };
}

/** What only the worker on the agent's host can do: its gateway listens on loopback. */
export function createHeartbeatActivities(sender: HeartbeatSender) {
  return {
    sendHeartbeat: (agent: AgentRef) =>
      asApplicationFailure(() => sender.send(agent, Context.current().cancellationSignal)),
  };
}

export type HeartbeatRecordActivities = ReturnType<typeof createHeartbeatRecordActivities>;
export type HeartbeatActivities = ReturnType<typeof createHeartbeatActivities>;
