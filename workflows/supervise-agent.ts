import {
  CancellationScope,
  ContinueAsNew,
  allHandlersFinished,
  condition,
  continueAsNew,
  log,
  sleep,
  workflowInfo,
} from '@temporalio/workflow';
import type { AgentRef } from '../src/types/agent-ref.js';
import { failureReason } from './failure-reason.js';
import { Operations } from './operations.js';
import { proxyRecords } from './records.js';
import type { SuperviseAgentInput } from './supervise-agent-messages.js';
import { Watchdog } from './watchdog.js';

/** Far below Temporal's limit (51,200 events), so that a replay stays fast. */
const MAX_HISTORY_EVENTS = 500;

/** Milliseconds before a supervisor continues after an unexpected failure. */
const FIRST_PAUSE_MS = 1_000;
const LAST_PAUSE_MS = 60_000;

/**
 * Supervises one agent for its lifetime, as the only writer of its container: runs operations, which arrive
 * as Updates, one at a time, and watches the agent between them. Only cancellation or the agent's removal
 * ends it: after any failure it reloads its state from the database and continues.
 */
export async function superviseAgent(input: SuperviseAgentInput): Promise<void> {
  const { agentId, userId, host } = input;
  const agent: AgentRef = { agentId, userId, host };
  const record = proxyRecords();
  const watchdog = new Watchdog(agent, input);
  const operations = new Operations(agent, watchdog, input);

  let isGone = false;
  for (let failures = 0; !isGone && !operations.agentIsGone;) {
    try {
      // Handlers run first, because a replay may deliver their messages together with earlier ones.
      await condition(allHandlersFinished);
      if (watchdog.isStale) {
        isGone = !(await restore());
      } else {
        await step();
        failures = 0;
      }
    } catch (error) {
      const isCancelled = CancellationScope.current().consideredCancelled;
      if (error instanceof ContinueAsNew || isCancelled) throw error;
      log.error('the supervisor has failed and continues', { reason: failureReason(error) });
      watchdog.invalidate();
      await sleep(Math.min(FIRST_PAUSE_MS * 2 ** failures++, LAST_PAUSE_MS));
    }
  }
  await condition(allHandlersFinished);

  /** Loads the agent's state from the database; false if the agent no longer exists. */
  async function restore(): Promise<boolean> {
    const known = await record.loadSupervisedState(agent);
    if (!known) return false;
    operations.restore(known);
    watchdog.restore(known);
    return true;
  }

  async function step(): Promise<void> {
    const { desired, provisioned } = operations.state;
    const isLong = workflowInfo().historyLength > MAX_HISTORY_EVENTS;
    if (operations.isWaiting) {
      await operations.runNext();
    } else if (isLong) {
      await continueAsNew<typeof superviseAgent>({
        ...agent,
        ...operations.state,
        ...watchdog.state,
      });
    } else if (desired === 'running' && provisioned) {
      await watchdog.watch();
    } else {
      await watchdog.keepStopped(provisioned);
    }
  }
}
