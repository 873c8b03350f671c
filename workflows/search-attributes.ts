import { defineSearchAttributeKey } from '@temporalio/common';

/** What an operator can filter runs by in the Temporal UI. */
export const AGENT_ID = defineSearchAttributeKey('AgentId', 'KEYWORD');
export const AGENT_OWNER = defineSearchAttributeKey('AgentOwner', 'KEYWORD');
/** The supervisor's phase: `provisioning`, `running`, `stopped`, `error`, `deleting` and so on. */
export const AGENT_PHASE = defineSearchAttributeKey('AgentPhase', 'KEYWORD');
