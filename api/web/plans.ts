import * as z from 'zod';
import { planRequired, PLANS, STORAGE_PLANS } from '../../src/types/plans.js';
import { planOfPerson } from '../auth/person.js';
import { session } from '../auth/session.js';
import { area } from '../http/area.js';
import { redirect, reply } from '../http/reply.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';

const billing = area({ tag: 'Billing', auth: session });

export const soldPlan = z.enum(PLANS, { error: 'Invalid plan' });

export const planPage = z
  .strictObject({
    url: z.string().describe("The payment processor's page to pay or to confirm the change on"),
    sessionId: z.string().nullable().describe('Null for a change of your subscription'),
  })
  .meta({ id: 'PlanPage' });

/** Creates the endpoints that sell plans (spec 4.15). */
export function planEndpoints({ planCheckouts }: WebDependencies) {
  return [
    billing({
      method: 'GET',
      path: '/api/payproc/checkout',
      operationId: 'buyPlan',
      summary: "Redirect to the payment processor's page for buying a plan, or changing yours",
      query: z.object({ plan: soldPlan.describe('A plan that can be bought') }),
      limitOfCaller: LIMITS.checkoutsOfUser,
      responses: { 303: 'redirect' },
      errors: [500],
      async handler({ caller, query, tenant }) {
        const { url } = await planCheckouts.start(tenant, caller.user.id, query.plan);
        return redirect(303, url);
      },
    }),
    billing({
      method: 'POST',
      path: '/api/payproc/storage-upgrade',
      operationId: 'buyStorage',
      summary: 'Start the purchase of a storage plan, or a change of your storage plan',
      body: z.object({ plan: z.enum(STORAGE_PLANS, { error: 'Invalid plan' }) }),
      limitOfCaller: LIMITS.checkoutsOfUser,
      responses: { 200: planPage },
      errors: [402, 500],
      async handler({ body, caller, tenant }) {
        if (planOfPerson(caller) === undefined) throw planRequired();
        return reply(200, await planCheckouts.start(tenant, caller.user.id, body.plan));
      },
    }),
  ];
}
