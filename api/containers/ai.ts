import { entitlementOf } from '../../src/accounts/entitlement.js';
import { AGENT_MODEL } from '../../src/agents/agent-specs.js';
import { getAgent } from '../../src/agents/agents.js';
import type { Ai } from '../../src/ai/ai.js';
import type { Config } from '../../src/config.js';
import type { Database } from '../../src/database/database.js';
import { endpoint } from '../http/endpoint.js';
import { reply } from '../http/reply.js';
import { complete, requestOf } from '../openai/complete.js';
import { completionBody, modelList, presentModel } from '../openai/completion-schemas.js';
import { OPENAI_ERRORS } from '../openai/error-form.js';

/** What the agents' AI endpoints work with. */
export interface AgentAiDependencies {
  readonly config: Config;
  readonly database: Database;
  readonly ai: Ai;
}

const PATH = '/v1/chat/completions';

/**
 * The OpenAI-compatible endpoints for agents (decision 22): they hold no provider key. What they
 * use is their owner's.
 */
export function agentAiEndpoints(dependencies: AgentAiDependencies) {
  const { ai, config, database } = dependencies;
  return [
    endpoint({
      method: 'POST',
      path: PATH,
      summary: "Chat completion by the agent's model",
      tag: 'AI',
      auth: 'agent',
      body: completionBody,
      responses: { 200: 'stream' },
      errorForm: OPENAI_ERRORS,
      errors: [402, 404, 429, 502, 503],
      async handler({ body, caller, signal, tenant }) {
        const agent = await getAgent(tenant, caller.agentId);
        const entitlement = await entitlementOf(database, caller.userId, config);
        return complete(ai.completions, {
          entitlement,
          agentId: agent.id,
          endpoint: PATH,
          route: ai.router.forAgent(agent, entitlement.plan),
          request: requestOf(body),
          signal,
        });
      },
    }),
    endpoint({
      method: 'GET',
      path: '/v1/models',
      summary: 'The one model that agents name',
      tag: 'AI',
      auth: 'agent',
      responses: { 200: modelList },
      errorForm: OPENAI_ERRORS,
      handler: () =>
        reply(200, { object: 'list' as const, data: [presentModel(AGENT_MODEL, 'platform')] }),
    }),
  ];
}
