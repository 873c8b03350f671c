import { AgentCallerLookup } from './agents/agent-caller-lookup.js';
import { createAi } from './ai/ai.js';
import { Refusals } from './audit/refusals.js';
import type { ApiFoundation, ApiServices } from './services.js';

/** What agents' AI calls need, in a process of their own. */
export interface AgentAiServices extends Pick<ApiServices, 'ai' | 'refusals'> {
  readonly agentCallers: AgentCallerLookup;
}

/** To be closed by way of `ai`. */
export function createAgentAiServices(
  foundation: Pick<ApiFoundation, 'settings' | 'database' | 'log' | 'onAttempt'>,
): AgentAiServices {
  const { database, log, settings } = foundation;
  return {
    agentCallers: new AgentCallerLookup(database, settings.accounts),
    ai: createAi(foundation),
    refusals: new Refusals(database, log),
  };
}
