import { formatAmount } from '../../src/types/money.js';
import { anonymous } from '../auth/anonymous.js';
import { person } from '../auth/person.js';
import { cloneAgent } from '../backend/contract.js';
import { area } from '../http/area.js';
import { errorsOf } from '../http/derived-errors.js';
import { endpoint } from '../http/endpoint.js';
import { reply } from '../http/reply.js';
import { cloneTerms, presentTerms } from '../views/clones.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';

const terms = area({ tag: 'Clones', auth: anonymous, limit: LIMITS.agents });

/** Creates `GET|POST /api/agents/clone` (spec 4.7). */
export function cloneEndpoints({ backend, clones, settings }: WebDependencies) {
  const { method, path, summary, tag, idempotent, body, responses } = cloneAgent;
  return [
    terms({
      method: 'GET',
      path: '/api/agents/clone',
      summary: 'Get the price of a clone, and whether clones can be paid for now',
      responses: { 200: cloneTerms },
      handler: async () => reply(200, await presentTerms(clones, settings.chain)),
    }),
    endpoint({
      ...{ method, path, summary, tag, idempotent, body, responses },
      auth: person,
      limit: LIMITS.agents,
      errors: [...errorsOf(cloneAgent), 403],
      async handler(request) {
        const { paymentProof, ...asked } = request.body;
        const amount = formatAmount(paymentProof.amount);
        const sent = { ...asked, paymentProof: { ...paymentProof, amount } };
        return reply(
          202,
          await backend.call(request, cloneAgent, { body: sent, keepsAnswer: true }),
        );
      },
    }),
  ];
}
