import * as z from 'zod';
import { getAgent } from '../../src/agents/agents/agents.js';
import { requireUndisputed } from '../../src/gateway/disputed-payer.js';
import { UnauthorizedError } from '../../src/lib/errors.js';
import { anonymous } from '../auth/anonymous.js';
import { optionalSession } from '../auth/optional-session.js';
import { endpoint } from '../http/endpoint.js';
import { reply } from '../http/reply.js';
import { readX402Order, X402_ERRORS, x402Answer, x402Request } from '../views/x402.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';

const PATH = '/api/x402';

/** Creates `GET|POST /api/x402`, the proxy of the x402 gateway (spec 4.3). */
export function x402Endpoints({ x402, x402Payments }: WebDependencies) {
  return [
    endpoint({
      method: 'GET',
      path: PATH,
      operationId: 'getColonyHealth',
      summary: 'Report the health of the x402 gateway',
      tag: 'Gateway',
      auth: anonymous,
      limit: LIMITS.x402Health,
      responses: {
        200: z
          .looseObject({ gateway: z.string().nullable(), status: z.string() })
          .describe('Further fields of the gateway are passed on'),
        503: z.strictObject({
          gateway: z.string().nullable().describe('null without a gateway'),
          status: z.literal('unreachable'),
          error: z.string(),
        }),
      },
      async handler({ signal }) {
        const health = await x402.health(signal);
        const gateway = x402.shownAddress;
        if (!health.isReachable) {
          return reply(503, { gateway, status: 'unreachable', error: health.reason });
        }
        return reply(200, { ...health.fields, gateway });
      },
    }),
    endpoint({
      method: 'POST',
      path: PATH,
      operationId: 'callColony',
      summary:
        "List the x402 gateway's endpoints, read an agent's status there, join its colony, or pay",
      tag: 'Gateway',
      auth: optionalSession,
      limit: LIMITS.x402,
      errorForm: X402_ERRORS,
      idempotent: true,
      body: x402Request,
      responses: { 200: x402Answer },
      errors: [401, 402, 404, 503],
      async handler(request) {
        const { body, caller, idempotencyId: idempotencyKey, signal, tenant } = request;
        if (body.action === 'endpoints') return reply(200, await x402.endpoints(signal));
        if (caller.kind !== 'session') throw new UnauthorizedError('Authentication required');
        const order = readX402Order(body);
        const { agentId } = order;
        switch (order.action) {
          case 'fitness':
            return reply(200, await x402.fitness(agentId, { idempotencyKey, signal }));
          case 'pricing':
            return reply(200, await x402.pricing(agentId, { idempotencyKey, signal }));
          case 'join-colony': {
            const { walletAddress } = order;
            await getAgent(tenant, agentId);
            return reply(200, await x402.joinColony({ agentId, walletAddress }, idempotencyKey));
          }
          case 'pay': {
            const { keepAnswer, requestId } = request;
            x402Payments.requireEnabled();
            await getAgent(tenant, agentId);
            await requireUndisputed(tenant, caller.user.id);
            const answer = await x402Payments.pay({
              id: idempotencyKey,
              requestId,
              user: caller.user,
              payment: order.payment,
              keep: keepAnswer && ((db, said) => keepAnswer(db, reply(200, said))),
            });
            return reply(200, answer);
          }
        }
      },
    }),
  ];
}
