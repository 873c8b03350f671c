import { allows } from '../../src/ai/models/model-set.js';
import { bearer } from '../auth/bearer.js';
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
import { aiEntitlement } from './ai-entitlement.js';
import { callerAi } from './caller-ai.js';
import type { BackendDependencies } from './dependencies.js';

const PATH = '/v1/chat/completions';

const openAi = area({
  tag: 'AI',
  auth: bearer,
  keyScope: 'ai',
  errorForm: OPENAI_ERRORS,
  errors: [402],
});

/** The model name that OpenAI clients send if their user chose none. */
const AUTO = 'auto';

/** Creates the OpenAI-compatible endpoints (decision 22), for programs with a user's API key. */
export function openAiEndpoints({ ai, settings }: BackendDependencies) {
  return [
    openAi({
      method: 'POST',
      path: PATH,
      operationId: 'createChatCompletion',
      summary: "Complete a chat in OpenAI's format, streaming or not",
      limitOfCaller: aiCallLimit(settings.http),
      atOnce: AI_CALLS_AT_ONCE,
      body: passedOnBody(completionBody),
      responses: { 200: [completionAnswer, 'stream'] },
      errors: [403, 404, 429, 502, 503],
      handler({ body, caller, signal }) {
        const entitlement = aiEntitlement(caller, settings.accounts.adminEmails);
        const { model } = body;
        const { ownKeys, router } = callerAi(ai, caller);
        return complete(ai.completions, {
          entitlement,
          agentId: null,
          endpoint: PATH,
          ownKeys,
          route: router.for(model === AUTO ? {} : { model }, entitlement.plan),
          request: requestOf(body),
          signal,
        });
      },
    }),
    openAi({
      method: 'GET',
      path: '/v1/models',
      operationId: 'listOpenAiModels',
      summary: "List the models available to the caller, in OpenAI's format",
      responses: { 200: modelList },
      handler({ caller }) {
        const { plan } = aiEntitlement(caller, settings.accounts.adminEmails);
        const models = callerAi(ai, caller).router.models.current.entries.filter(
          (entry) => entry.available && allows(plan, entry),
        );
        return reply(200, {
          object: 'list',
          data: models.map(({ id, provider }) => presentModel(id, provider)),
        });
      },
    }),
  ];
}
