import { AgentCallerLookup } from './agents/credentials/agent-caller-lookup.js';
import { BusAcceptance } from './bus/bus-acceptance.js';
import { BusInbox } from './bus/bus-messages.js';
import { BusSignatures } from './bus/bus-signatures.js';
import { createAi } from './ai/routing/ai.js';
import { Refusals } from './platform/audit/refusals.js';
import { SecretBox } from './platform/secrets/secret-box.js';
import type { ApiFoundation, ApiServices } from './services.js';

/** The part of the bus that agents reach from their containers. */
export interface AgentBus {
  readonly busAcceptance: BusAcceptance;
  readonly busInbox: BusInbox;
  readonly busSignatures: BusSignatures;
}

/** The services for agents' AI calls and messages, run in a process of their own. */
export interface AgentAiServices extends AgentBus, Pick<ApiServices, 'ai' | 'refusals'> {
  readonly agentCallers: AgentCallerLookup;
}

/** Creates the services. Closing `ai` closes them. */
export function createAgentAiServices(
  foundation: Pick<ApiFoundation, 'settings' | 'database' | 'log' | 'onAttempt'>,
): AgentAiServices {
  const { database, log, settings } = foundation;
  return {
    ...createAgentBus(foundation),
    agentCallers: new AgentCallerLookup(database, settings.accounts),
    ai: createAi({ ...foundation, secrets: new SecretBox(settings.secrets.keys) }),
    refusals: new Refusals(database, log),
  };
}

export function createAgentBus({
  database,
  settings,
}: Pick<ApiFoundation, 'settings' | 'database'>): AgentBus {
  const secrets = new SecretBox(settings.secrets.keys);
  return {
    busAcceptance: new BusAcceptance({ database, secrets }),
    busInbox: new BusInbox(database, secrets),
    busSignatures: new BusSignatures(database, secrets),
  };
}
