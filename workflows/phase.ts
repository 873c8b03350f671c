import { setCurrentDetails, upsertSearchAttributes } from '@temporalio/workflow';
import { AGENT_PHASE } from './search-attributes.js';

/** Shows operators what is going on with an agent, and why. */
export function showPhase(
  phase: string,
  desired: 'running' | 'stopped',
  reason: string | null,
): void {
  upsertSearchAttributes([{ key: AGENT_PHASE, value: phase }]);
  setCurrentDetails(
    [`**${phase}**, desired ${desired}`, ...(reason === null ? [] : [reason])].join('\n\n'),
  );
}
