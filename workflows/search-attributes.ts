import { defineSearchAttributeKey, type SearchAttributePair } from '@temporalio/common';
import type { AgentRef } from '../src/types/agent-ref.js';

/** Search attributes by which operators filter runs in the Temporal UI. */
export const AGENT_ID = defineSearchAttributeKey('AgentId', 'KEYWORD');
export const AGENT_OWNER = defineSearchAttributeKey('AgentOwner', 'KEYWORD');
/** `provisioning`, `running`, `stopped`, `error`, `deleting` and so on. */
export const AGENT_PHASE = defineSearchAttributeKey('AgentPhase', 'KEYWORD');

export const attributesOf = ({
  agentId,
  userId,
}: Pick<AgentRef, 'agentId' | 'userId'>): SearchAttributePair[] => [
  { key: AGENT_ID, value: agentId },
  { key: AGENT_OWNER, value: userId },
];
