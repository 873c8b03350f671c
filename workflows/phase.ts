import { setCurrentDetails, upsertSearchAttributes } from '@temporalio/workflow';
import { AGENT_PHASE } from './search-attributes.js';

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
