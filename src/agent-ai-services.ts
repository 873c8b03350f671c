import { AgentCallerLookup } from './agents/credentials/agent-caller-lookup.js';
import { createAi } from './ai/routing/ai.js';
import { Refusals } from './platform/audit/refusals.js';
import { SecretBox } from './platform/secrets/secret-box.js';
import type { ApiFoundation, ApiServices } from './services.js';

/** The services for agents' AI calls, run in a process of their own. */
export interface AgentAiServices extends Pick<ApiServices, 'ai' | 'refusals'> {
  readonly agentCallers: AgentCallerLookup;
}

/** Creates the services. Closing `ai` closes them. */
export function createAgentAiServices(
  foundation: Pick<ApiFoundation, 'settings' | 'database' | 'log' | 'onAttempt'>,
): AgentAiServices {
  const { database, log, settings } = foundation;
  return {
    agentCallers: new AgentCallerLookup(database, settings.accounts),
    ai: createAi({ ...foundation, secrets: new SecretBox(settings.secrets.keys) }),
    refusals: new Refusals(database, log),
  };
}
