import type { Priority } from '@temporalio/common';
import { ParentClosePolicy, executeChild } from '@temporalio/workflow';
import type { AgentRef } from '../src/types/agent-ref.js';
import type { WatchdogMemory, WatchdogSettings } from '../src/types/watchdog.js';
import { repairAgentId } from './ids.js';
import { repairAgent, type RepairOutcome } from './repair-agent.js';
import { attributesOf } from './search-attributes.js';

/** Runs a repair as a child workflow, so that operators see each one. */
export function startRepair(
  agent: AgentRef,
  memory: WatchdogMemory,
  settings: WatchdogSettings,
  priority: Priority | undefined,
): Promise<RepairOutcome> {
  return executeChild(repairAgent, {
    workflowId: repairAgentId(agent.agentId),
    args: [{ ...agent, memory, settings, isAskedFor: priority !== undefined }],
    ...(priority && { priority }),
    cancellationType: 'WAIT_CANCELLATION_COMPLETED',
    parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
    typedSearchAttributes: attributesOf(agent),
    staticSummary: `Repair agent ${agent.agentId}`,
  });
}
