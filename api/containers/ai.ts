import { entitled } from '../../src/accounts/entitlement.js';
import { AGENT_MODEL } from '../../src/agents/runtime-store.js';
import type { Ai } from '../../src/ai/ai.js';
import { agentToken } from '../auth/agent-token.js';
import { area } from '../http/area.js';
import { reply } from '../http/reply.js';
import { complete, requestOf } from '../openai/complete.js';
import { completionBody, modelList, presentModel } from '../openai/completion-schemas.js';
import { OPENAI_ERRORS } from '../openai/error-form.js';

const PATH = '/v1/chat/completions';

const agentAi = area({ tag: 'AI', auth: agentToken, errorForm: OPENAI_ERRORS });

/**
 * The OpenAI-compatible endpoints for agents (decision 22): they hold no provider key. What they
 * use is their owner's.
 */
export function agentAiEndpoints(ai: Ai) {
  return [
    agentAi({
      method: 'POST',
      path: PATH,
      summary: "Chat completion by the agent's model",
      body: completionBody,
      responses: { 200: 'stream' },
      errors: [402, 404, 429, 502, 503],
      handler({ body, caller, signal }) {
        const entitlement = entitled(caller.userId, caller.isAdmin, caller.plan);
        return complete(ai.completions, {
          entitlement,
          agentId: caller.agentId,
          endpoint: PATH,
          route: ai.router.forAgent(caller, entitlement.plan),
          request: requestOf(body),
          signal,
        });
      },
    }),
    agentAi({
      method: 'GET',
      path: '/v1/models',
      summary: 'The one model that agents name',
      responses: { 200: modelList },
      handler: () => reply(200, { object: 'list', data: [presentModel(AGENT_MODEL, 'platform')] }),
    }),
  ];
}
