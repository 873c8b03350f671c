import { creditsPaymentSource } from '../../src/gateway/credits-purse.js';
import type { GatewayAction } from '../../src/gateway/gateway-action.js';
import { sessionPaymentSource } from '../../src/gateway/session-purse.js';
import type { PaymentSource } from '../../src/gateway/debits.js';
import { BadRequestError } from '../../src/lib/errors.js';
import { StillRunningError } from '../../src/platform/idempotency/idempotency-store.js';
import { formatAmount } from '../../src/types/money.js';
import { anonymous } from '../auth/anonymous.js';
import type { CallerOf } from '../auth/authentication.js';
import { payer } from '../auth/payer.js';
import { area } from '../http/area.js';
import { reply } from '../http/reply.js';
import { validator } from '../http/validation.js';
import {
  gatewayAnswer,
  gatewayOffer,
  gatewayOrder,
  paymentRefusal,
  presentAction,
  presentPaymentTerms,
  presentPriceAboveMaximum,
  presentRefusal,
  presentServed,
  presentUnpaid,
} from '../views/gateway.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';

const PATH = '/api/v1/gateway';

const REMAINING = 'X-Session-Remaining';

const sold = area({ tag: 'Gateway', auth: anonymous, limit: LIMITS.gateway });

/** Creates `GET|POST /api/v1/gateway` (spec 4.9, 4.15). */
export function gatewayEndpoints({ database, gateway, sessionDebits, settings }: WebDependencies) {
  const payment = presentPaymentTerms(settings.chain, settings.paymentSessions);
  const presented = madeOnce(presentAction);
  const readers = madeOnce(({ input }) => validator(input, 'input'));

  return [
    sold({
      method: 'GET',
      path: PATH,
      operationId: 'listGatewayActions',
      summary: 'List the actions on offer, their prices, and how to pay',
      responses: { 200: gatewayOffer },
      handler: async () =>
        reply(200, { plugins: (await gateway.catalogue.list()).map(presented), payment }),
    }),
    sold({
      method: 'POST',
      path: PATH,
      operationId: 'runGatewayAction',
      summary: 'Buy one run of an action, by a payment session or by credits',
      auth: payer,
      keyScope: 'gateway',
      idempotent: true,
      limitOfRefusals: LIMITS.refusedRuns,
      body: gatewayOrder,
      responses: { 200: gatewayAnswer, 402: paymentRefusal },
      answerHeaders: [REMAINING],
      errors: [400, 404, 502],
      async handler({ body, caller, idempotencyId, keepAnswer }) {
        const action = await gateway.catalogue.find(body.plugin, body.action);
        const { input: given, maxPrice } = body;
        const input = readers(action)(given);
        if (action.isPricedByOthers && maxPrice === undefined) {
          throw new BadRequestError(
            `maxPrice is required for ${action.plugin}, because others set its prices`,
          );
        }
        if (caller.kind === 'anonymous') {
          return caller.hasSessionHeaders
            ? reply(402, presentRefusal(action, { code: 'SESSION_INVALID', remaining: undefined }))
            : reply(402, presentUnpaid(action, payment));
        }
        const purse = purseOf(caller, action);
        if (maxPrice !== undefined && action.price > maxPrice) {
          const remaining = await purse.remaining();
          return reply(402, presentPriceAboveMaximum(action), remainingOf(purse, remaining));
        }
        const answerTo = (served: Parameters<typeof presentServed>[2]) =>
          reply(200, presentServed(action, purse, served), remainingOf(purse, served.remaining));
        const served = await gateway.serve(
          { action, input, purse, idempotencyKey: idempotencyId },
          keepAnswer &&
            (async (db, served) => {
              const isKept = await keepAnswer(db, answerTo(served));
              if (!isKept) throw new StillRunningError();
            }),
        );
        if (!('code' in served)) return answerTo(served);
        return reply(402, presentRefusal(action, served), remainingOf(purse, served.remaining));
      },
    }),
  ];

  function purseOf(
    caller: Exclude<CallerOf<typeof payer>, { kind: 'anonymous' }>,
    action: GatewayAction,
  ): PaymentSource {
    return caller.kind === 'payment-session'
      ? sessionPaymentSource(database, caller.session.id, settings.paymentSessions, sessionDebits)
      : creditsPaymentSource(database, caller.user.id, action, settings.billing);
  }
}

/** Returns a factory that caches its result per action. */
function madeOnce<Made>(make: (action: GatewayAction) => Made): (action: GatewayAction) => Made {
  const made = new WeakMap<GatewayAction, Made>();
  return (action) => {
    const known = made.get(action);
    if (known !== undefined) return known;
    const fresh = make(action);
    made.set(action, fresh);
    return fresh;
  };
}

/** The balance header is only for sessions, not for credits. */
const remainingOf = ({ method }: PaymentSource, remaining: bigint | undefined) =>
  method === 'session' && remaining !== undefined
    ? { [REMAINING]: formatAmount(remaining) }
    : undefined;
