import * as z from 'zod';
import { isPlan, type Plan } from '../../src/types/plans.js';
import { costOf } from '../../src/ai/routing/cost.js';
import { PROVIDER_NAMES, isProviderName } from '../../src/ai/completion/provider-names.js';
import { NotFoundError, UnavailableError } from '../../src/lib/errors.js';
import type { CallerOf } from '../auth/authentication.js';
import { bearer } from '../auth/bearer.js';
import { anonymous } from '../auth/anonymous.js';
import { area } from '../http/area.js';
import { modelItem, presentModelItem } from '../views/models.js';
import { reply } from '../http/reply.js';
import { planEntitlement } from './ai-entitlement.js';
import { taskType, timestamp, tokenCount } from './ai-schemas.js';
import type { BackendDependencies } from './dependencies.js';

const aiApi = area({ tag: 'AI', auth: anonymous });

const counts = Object.fromEntries(PROVIDER_NAMES.map((name) => [name, z.int()]));

/** Creates the `/api/ai/*` endpoints except the chat (spec 4.8). */
export function aiEndpoints({ ai, settings }: BackendDependencies) {
  const items = () => ai.models.current.entries.map(presentModelItem);
  const now = () => new Date().toISOString();
  return [
    aiApi({
      method: 'GET',
      path: '/api/ai/health',
      operationId: 'getAiHealth',
      summary: 'Report whether the AI providers are reachable and have models',
      responses: {
        200: z.strictObject({
          status: z.enum(['healthy', 'degraded']),
          providers: z.partialRecord(z.enum(PROVIDER_NAMES), z.boolean()),
          timestamp,
        }),
        503: z.strictObject({ status: z.literal('error'), error: z.string() }),
      },
      async handler() {
        const providers = await ai.health.check();
        const reachable = Object.values(providers);
        if (reachable.length === 0) {
          const error = 'No AI provider is configured';
          return reply(503, { status: 'error', error });
        }
        const isComplete = reachable.every(Boolean) && ai.models.current.everyProviderServes;
        const status = isComplete ? 'healthy' : 'degraded';
        return reply(200, { status, providers, timestamp: now() });
      },
    }),
    aiApi({
      method: 'GET',
      path: '/api/ai/models',
      operationId: 'listAiModels',
      summary: 'List all models, with a count per provider',
      responses: {
        200: z.strictObject({
          models: z.array(modelItem),
          count: z.int(),
          timestamp,
          ...counts,
        }),
      },
      handler() {
        const models = items();
        const of = (name: string) => models.filter(({ provider }) => provider === name).length;
        return reply(200, {
          models,
          count: models.length,
          timestamp: now(),
          ...Object.fromEntries(PROVIDER_NAMES.map((name) => [name, of(name)])),
        });
      },
    }),
    aiApi({
      method: 'GET',
      path: '/api/ai/models/:provider',
      operationId: 'listProviderModels',
      summary: "List a provider's models",
      params: z.object({
        provider: z.string().max(50).describe('Name of the AI provider, such as `openai`'),
      }),
      responses: {
        200: z.strictObject({
          provider: z.string(),
          models: z.array(modelItem),
          count: z.int(),
          timestamp,
        }),
      },
      errors: [404],
      handler({ params: { provider } }) {
        if (!isProviderName(provider)) throw new NotFoundError('Provider not found');
        const models = items().filter((item) => item.provider === provider);
        return reply(200, { provider, models, count: models.length, timestamp: now() });
      },
    }),
    aiApi({
      method: 'POST',
      path: '/api/ai/models/select',
      operationId: 'selectModel',
      summary: 'Select the model for a kind of task',
      auth: bearer,
      keyScope: 'ai',
      body: z.object({ taskType: taskType.default('general') }),
      responses: {
        200: z.strictObject({
          model: z.strictObject({ id: z.string(), provider: z.string() }),
          taskType: z.string(),
          timestamp,
        }),
      },
      errors: [404],
      handler({ body, caller }) {
        const [first] = routeFor(body.taskType, planOf(caller));
        if (!first) throw new NotFoundError('No model is available for this task');
        const { provider, model } = first;
        return reply(200, {
          model: { id: `${provider}/${model}`, provider },
          taskType: body.taskType,
          timestamp: now(),
        });
      },
    }),
    aiApi({
      method: 'POST',
      path: '/api/ai/estimate-cost',
      operationId: 'estimateCost',
      summary: 'Calculate the cost of a number of tokens of a model',
      auth: bearer,
      keyScope: 'ai',
      body: z.object({
        model: z.string().min(1).max(200),
        inputTokens: tokenCount,
        outputTokens: tokenCount,
      }),
      responses: {
        200: z.strictObject({
          model: z.string(),
          inputTokens: z.int(),
          outputTokens: z.int(),
          estimatedCost: z.number(),
          currency: z.literal('USD'),
          timestamp,
        }),
      },
      errors: [402, 404],
      handler({ body, caller }) {
        planEntitlement(caller, settings.accounts.adminEmails);
        const entry = ai.models.current.find(body.model);
        if (!entry) throw new NotFoundError('Model not found');
        const estimatedCost = Number(costOf(entry, body));
        return reply(200, { ...body, estimatedCost, currency: 'USD', timestamp: now() });
      },
    }),
  ];

  /** Returns the candidate routes for a task; none if no provider is configured. */
  function routeFor(task: string, plan: Plan) {
    try {
      return ai.router.forTask(task, plan);
    } catch (error) {
      if (error instanceof UnavailableError) return [];
      throw error;
    }
  }
}

/**
 * Returns the plan to select models by. A selection uses no model, so all models are candidates without a
 * plan.
 */
function planOf(caller: CallerOf<typeof bearer>): Plan {
  const isAdmin = caller.kind === 'api-key' && caller.isAdmin;
  return !isAdmin && isPlan(caller.plan) ? caller.plan : 'network';
}
