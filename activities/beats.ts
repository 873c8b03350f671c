import { Context } from '@temporalio/activity';
import type { AgentRef } from '../src/agents/agent-ref.js';
import type { Beats } from '../src/heartbeat/beats.js';
import { asApplicationFailure } from './failures.js';

/** Which agents a heartbeat asks. Run as local activities: short and idempotent. */
export function createBeatRecordActivities(beats: Beats) {
  return {
    beginBeat: beats.begin.bind(beats),
    runningAgents: beats.running.bind(beats),
  };
}

/** What only the worker on the agent's host can do: its gateway listens on loopback. */
export function createBeatActivities(beats: Beats) {
  return {
    beatAgent: (agent: AgentRef) =>
      asApplicationFailure(() => beats.ask(agent, Context.current().cancellationSignal)),
  };
}

export type BeatRecordActivities = ReturnType<typeof createBeatRecordActivities>;
export type BeatActivities = ReturnType<typeof createBeatActivities>;
