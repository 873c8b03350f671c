import { OPERATOR_USER_ID } from '../../src/types/operator-user.js';
import { anonymous } from '../auth/anonymous.js';
import { area } from '../http/area.js';
import { reply } from '../http/reply.js';
import { cloneTerms, presentClone, presentTerms } from '../views/clones.js';
import { cloneAgent } from './contract.js';
import type { BackendDependencies } from './dependencies.js';

const terms = area({ tag: 'Clones', auth: anonymous });

/** Creates the backend's `GET|POST /api/agents/clone` (spec 4.7). */
export function cloneEndpoints({ clones, settings }: BackendDependencies) {
  return [
    terms({
      method: 'GET',
      path: '/api/agents/clone',
      summary: 'Get the price of a clone, and whether clones can be paid for now',
      responses: { 200: cloneTerms },
      handler: async () => reply(200, await presentTerms(clones, settings.chain)),
    }),
    cloneAgent.handledBy(async ({ body, caller, idempotencyId, requestId, tenant }) => {
      const actor = caller.kind === 'internal' ? caller.user?.id : caller.userId;
      const by = { actor: actor ?? OPERATOR_USER_ID, idempotencyId, requestId, tenant };
      return reply(202, presentClone(await clones.request(by, body)));
    }),
  ];
}
