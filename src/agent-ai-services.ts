import { createAi } from './ai/routing/ai.js';
import { Refusals } from './platform/audit/refusals.js';
import type { ApiFoundation, ApiServices } from './services.js';

/** The services for agents' AI calls, run in a process of their own. */
export type AgentAiServices = Pick<ApiServices, 'ai' | 'refusals'>;

/** Creates the services. Closing `ai` closes them. */
export function createAgentAiServices(
  foundation: Pick<ApiFoundation, 'settings' | 'database' | 'log' | 'onAttempt'>,
): AgentAiServices {
  const { database, log } = foundation;
  return { ai: createAi(foundation), refusals: new Refusals(database, log) };
}
