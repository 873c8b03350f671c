import { entitled } from '../../src/accounts/accounts/entitlement.js';
import { requestedModelOf } from '../../src/agents/model/agent-model.js';
import { AGENT_MODEL } from '../../src/agents/operations/container-specs.js';
import type { Ai } from '../../src/ai/routing/ai.js';
import type { Settings } from '../../src/settings.js';
import { agentToken } from '../auth/agent-token.js';
import { area } from '../http/area.js';
import { passedOnBody } from '../http/body-format.js';
import { reply } from '../http/reply.js';
import { complete, requestOf } from '../openai/complete.js';
import { AI_CALLS_AT_ONCE, aiCallLimit } from '../openai/limits.js';
import {
  completionAnswer,
  completionBody,
  modelList,
  presentModel,
} from '../openai/completion-schemas.js';
import { OPENAI_ERRORS } from '../openai/error-form.js';

const PATH = '/v1/chat/completions';

const agentAi = area({ tag: 'AI', auth: agentToken, errorForm: OPENAI_ERRORS });

/** Creates the OpenAI-compatible endpoints for agents (decision 22); usage counts for the agent's owner. */
export function agentAiEndpoints({
  ai,
  settings,
}: {
  readonly ai: Ai;
  readonly settings: Pick<Settings, 'http'>;
}) {
  return [
    agentAi({
      method: 'POST',
      path: PATH,
      operationId: 'createChatCompletion',
      summary: "Complete a chat with the agent's model",
      body: passedOnBody(completionBody),
      limitOfCaller: aiCallLimit(settings.http),
      atOnce: AI_CALLS_AT_ONCE,
      responses: { 200: [completionAnswer, 'stream'] },
      errors: [402, 403, 404, 429, 502, 503],
      handler({ body, caller, signal }) {
        const entitlement = entitled(caller.userId, caller.isAdmin, caller.plan);
        const { plan } = entitlement;
        const { ownKeys, router } = ai.forCaller(caller);
        const requested = requestedModelOf(router.models.current, caller, plan);
        return complete(ai.completions, {
          entitlement,
          agentId: caller.agentId,
          endpoint: PATH,
          ownKeys,
          route: router.forAgent(requested, plan),
          request: requestOf(body),
          signal,
        });
      },
    }),
    agentAi({
      method: 'GET',
      path: '/v1/models',
      operationId: 'listOpenAiModels',
      summary: 'List the model; agents use a single model name',
      responses: { 200: modelList },
      handler: () => reply(200, { object: 'list', data: [presentModel(AGENT_MODEL, 'platform')] }),
    }),
  ];
}
