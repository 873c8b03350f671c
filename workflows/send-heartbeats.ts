import { continueAsNew, isCancellation, log, proxyActivities } from '@temporalio/workflow';
import type { HeartbeatActivities, HeartbeatRecordActivities } from '../activities/heartbeats.js';
import type { AgentRef } from '../src/types/agent-ref.js';
import { failureReason } from './failure-reason.js';
import { heartbeatsTaskQueue } from './ids.js';
import { proxyRecords } from './records.js';
import * as retries from './retries.js';

const AT_ONCE = 5;

export interface SendHeartbeatsInput {
  readonly userId: string;
  /** Time of the setting that the schedule follows, in ISO 8601. */
  readonly setAt: string;
  /** Position at which a new run of the same heartbeat continues, and its counts so far. */
  readonly after?: string;
  readonly counted?: HeartbeatCount;
}

/** `skipped` agents stopped before their turn. */
export interface HeartbeatCount {
  readonly answered: number;
  readonly skipped: number;
  readonly failed: number;
}

/**
 * Sends one heartbeat to each running agent of the user, one page of agents per run to limit the history. A
 * failed agent is not retried and does not keep others waiting.
 */
export async function sendHeartbeats(input: SendHeartbeatsInput): Promise<HeartbeatCount> {
  const { userId, setAt, after } = input;
  const record = proxyRecords<HeartbeatRecordActivities>();
  const count = { ...(input.counted ?? { answered: 0, skipped: 0, failed: 0 }) };
  // The schedule may be older than the setting, and then this run does nothing.
  if (after === undefined && !(await record.beginHeartbeat(userId, setAt))) return count;
  const { agents, next } = await record.runningAgents(userId, after ?? '');
  const waiting = [...agents];
  const askInTurn = async () => {
    for (let agent = waiting.shift(); agent; agent = waiting.shift()) count[await ask(agent)]++;
  };
  await Promise.all(Array.from({ length: AT_ONCE }, askInTurn));
  if (next === undefined) return count;
  return continueAsNew<typeof sendHeartbeats>({ userId, setAt, after: next, counted: count });
}

async function ask(agent: AgentRef): Promise<keyof HeartbeatCount> {
  const taskQueue = heartbeatsTaskQueue(agent.host);
  const { sendHeartbeat } = proxyActivities<HeartbeatActivities>({
    ...retries.heartbeat,
    taskQueue,
    priority: { fairnessKey: agent.userId },
  });
  try {
    return await sendHeartbeat.executeWithOptions({ summary: `Agent ${agent.agentId}` }, [agent]);
  } catch (error) {
    if (isCancellation(error)) throw error;
    log.warn('agent did not answer its heartbeat', {
      agentId: agent.agentId,
      reason: failureReason(error),
    });
    return 'failed';
  }
}
