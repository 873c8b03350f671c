import * as z from 'zod';
import { allows } from '../../src/ai/models/model-set.js';
import { person, planOfPerson } from '../auth/person.js';
import { endpoint } from '../http/endpoint.js';
import { modelItem, presentModelItem } from '../views/models.js';
import { reply } from '../http/reply.js';
import type { WebDependencies } from './dependencies.js';

/** Creates `GET /api/models`: the models on offer, and whether the user's plan includes each. */
export function modelEndpoints({ ai }: Pick<WebDependencies, 'ai'>) {
  return [
    endpoint({
      method: 'GET',
      path: '/api/models',
      operationId: 'listModels',
      summary: 'List the models, and whether your plan includes each',
      tag: 'AI',
      auth: person,
      keyScope: 'ai',
      responses: {
        200: z.strictObject({
          models: z.array(modelItem.extend({ allowed: z.boolean() })),
          count: z.int(),
        }),
      },
      handler({ caller }) {
        const plan = planOfPerson(caller);
        const models = ai.models.current.entries.map((entry) => ({
          ...presentModelItem(entry),
          allowed: plan !== undefined && allows(plan, entry),
        }));
        return reply(200, { models, count: models.length });
      },
    }),
  ];
}
