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

/** Far below where Temporal ends a run (51,200), so that a replay stays quick. */
const MAX_HISTORY_EVENTS = 500;

/** Before a supervisor goes on after a failure that nobody had reckoned with. */
const FIRST_PAUSE_MS = 1_000;
const LAST_PAUSE_MS = 60_000;

/**
 * The one supervisor of one agent, for as long as the agent lives: the only writer of its
 * container. Operations reach it as Updates and run one at a time; in between it watches.
 *
 * Nothing but its cancellation and the end of the agent ends it: whatever fails, it takes up what the
 * database knows, and goes on from there.
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
      // What brings the loop here is answered first: in a replay it may come with what was before.
      await condition(allHandlersFinished);
      if (watchdog.isStale) {
        isGone = !(await takeUp());
      } else {
        await goOn();
        failures = 0;
      }
    } catch (error) {
      const isCancelled = CancellationScope.current().consideredCancelled;
      if (error instanceof ContinueAsNew || isCancelled) throw error;
      log.error('the supervisor has failed, and goes on', { reason: failureReason(error) });
      watchdog.mistrust();
      await sleep(Math.min(FIRST_PAUSE_MS * 2 ** failures++, LAST_PAUSE_MS));
    }
  }
  await condition(allHandlersFinished);

  /** Goes on from what the database knows of the agent. False when it is no more. */
  async function takeUp(): Promise<boolean> {
    const known = await record.takeUp(agent);
    if (!known) return false;
    operations.takeUp(known);
    watchdog.takeUp(known);
    return true;
  }

  /** Takes the next step. */
  async function goOn(): Promise<void> {
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
