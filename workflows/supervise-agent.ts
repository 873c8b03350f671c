import { allHandlersFinished, condition, continueAsNew, workflowInfo } from '@temporalio/workflow';
import type { AgentRef } from '../src/agents/agent-ref.js';
import { Operations } from './operations.js';
import type { SuperviseAgentInput } from './supervise-agent-messages.js';
import { Watchdog } from './watchdog.js';

/** Far below where Temporal ends a run (51,200), so that a replay stays quick. */
const MAX_HISTORY_EVENTS = 500;

/**
 * The one supervisor of one agent, for as long as the agent lives: the only writer of its
 * container. Operations reach it as Updates and run one at a time; in between it watches.
 */
export async function superviseAgent(input: SuperviseAgentInput): Promise<void> {
  const { agentId, userId, host } = input;
  const agent: AgentRef = { agentId, userId, host };
  const watchdog = new Watchdog(agent, input);
  const operations = new Operations(agent, watchdog, input);

  while (!operations.agentIsGone) {
    // What brings the loop here is answered first: in a replay it may come with what was before.
    await condition(allHandlersFinished);
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
  await condition(allHandlersFinished);
}
