import * as z from 'zod';
import {
  findSubscription,
  type CurrentSubscription,
} from '../../src/accounts/accounts/subscriptions.js';
import { PROVIDER_NAMES } from '../../src/ai/completion/provider-names.js';
import { disableOwnKeys, enableOwnKey, listOwnKeys } from '../../src/ai/own-keys/own-key-store.js';
import { monthUsage, type MonthUsage } from '../../src/ai/usage/month-usage.js';
import { fieldMessage } from '../../src/lib/field-name.js';
import { creditBalance } from '../../src/money/ledger/ledger.js';
import { CREDIT_PRICES } from '../../src/types/credit-prices.js';
import { CENT, formatAmount, formattedAmount } from '../../src/types/money.js';
import {
  isPlan,
  isStoragePlan,
  PLAN_LIMITS,
  PLANS,
  STORAGE_LIMITS,
  STORAGE_PLANS,
  type Plan,
} from '../../src/types/plans.js';
import type { TenantDatabase } from '../../src/platform/database/database.js';
import { person, planOfPerson } from '../auth/person.js';
import { session } from '../auth/session.js';
import { area } from '../http/area.js';
import { reply } from '../http/reply.js';
import { checkout, creditPrice } from './credits.js';
import { planPage, soldPlan } from './plans.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';

const PATH = '/api/billing';

const GBP_A_MONTH = { currency: 'GBP', interval: 'month' } as const;

const gbpPrice = {
  price: z.number().describe('Pounds sterling'),
  currency: z.literal('GBP'),
  interval: z.literal('month'),
};

/** Texts of the prices, which are the same for everybody. */
const PRICES = {
  plans: PLANS.map((plan) => ({
    plan,
    price: PLAN_LIMITS[plan].monthlyPriceGbp,
    ...GBP_A_MONTH,
  })),
  credits: Object.entries(CREDIT_PRICES).map(([price, cents]) => ({
    price,
    amount: formatAmount(BigInt(cents) * CENT),
    currency: 'USD' as const,
  })),
  storage: STORAGE_PLANS.map((plan) => ({
    plan,
    bytes: STORAGE_LIMITS[plan].bytes,
    price: STORAGE_LIMITS[plan].monthlyPriceGbp,
    ...GBP_A_MONTH,
  })),
};

const byok = z.strictObject({
  enabled: z.boolean(),
  providers: z
    .array(z.enum(PROVIDER_NAMES))
    .describe('AI providers for which you have stored a key'),
});

const billing = z
  .strictObject({
    plan: z.enum(PLANS).nullable().describe('Null without an active subscription'),
    status: z.enum(['active', 'past_due', 'ended', 'none']),
    source: z.string().nullable().describe('`operator` for a granted plan, else `processor`'),
    periodEnd: z.iso.datetime().nullable().describe('Null for a plan without an end'),
    credits: z.strictObject({
      balance: formattedAmount,
      held: formattedAmount.describe('The part of `balance` that is reserved for runs in flight'),
      currency: z.literal('USD'),
    }),
    byok,
    storage: z.strictObject({
      plan: z.enum(STORAGE_PLANS).nullable(),
      bytes: z.int().describe("Additional space for each agent's memory"),
    }),
    prices: z.strictObject({
      plans: z.array(z.strictObject({ plan: z.enum(PLANS), ...gbpPrice })),
      credits: z.array(
        z.strictObject({
          price: z.string().meta({ examples: ['credits-500'] }),
          amount: formattedAmount,
          currency: z.literal('USD'),
        }),
      ),
      storage: z.array(
        z.strictObject({ plan: z.enum(STORAGE_PLANS), bytes: z.int(), ...gbpPrice }),
      ),
    }),
  })
  .meta({ id: 'Billing' });

const usage = z
  .strictObject({
    usage: z.strictObject({
      period: z.string().describe('The calendar month (UTC), such as `2026-11`'),
      tokens: z.strictObject({
        used: z.int().describe('Tokens that count against the quota'),
        limit: z.int().nullable().describe('Null without a limit; 0 without a plan'),
      }),
      cost: formattedAmount.describe('US dollars'),
      calls: z.int(),
    }),
  })
  .meta({ id: 'MonthUsage' });

const provider = z.enum(PROVIDER_NAMES, {
  error: `provider must be one of ${PROVIDER_NAMES.join(', ')}`,
});

/** A header's value: HTTP clients would quote any other in their errors. */
const apiKey = z
  .string()
  .regex(/^[\x21-\x7e]{1,500}$/, fieldMessage('must be 1 to 500 visible ASCII characters'));

const action = z.discriminatedUnion(
  'action',
  [
    z.object({ action: z.literal('get-usage') }),
    z.object({ action: z.literal('enable-byok'), provider, apiKey }),
    z.object({ action: z.literal('disable-byok'), provider: provider.optional() }),
    z.object({ action: z.literal('buy-credits'), price: creditPrice }),
    z.object({ action: z.literal('create-checkout'), plan: soldPlan }),
  ],
  { error: 'Invalid action' },
);

/** Creates `GET|POST /api/billing` (spec 4.15). */
export function billingEndpoints(dependencies: WebDependencies) {
  const { checkouts, planCheckouts, secrets, settings } = dependencies;
  const { providers } = settings.ai;
  const own = area({ tag: 'Billing', auth: session });
  return [
    area({ tag: 'Billing', auth: person, keyScope: 'any' })({
      method: 'GET',
      path: PATH,
      operationId: 'getBilling',
      summary: 'Get your plan, credits, own provider keys and storage, and the prices',
      responses: { 200: billing },
      async handler({ caller, tenant }) {
        return reply(200, await findBilling(tenant, caller.user.id));
      },
    }),
    own({
      method: 'POST',
      path: PATH,
      operationId: 'runBillingAction',
      summary:
        'Get your usage of this month; store or delete your own key of an AI provider; buy credits or a plan',
      body: action,
      limitOfCaller: LIMITS.billingOfUser,
      responses: { 200: z.union([usage, z.strictObject({ byok }), checkout, planPage]) },
      errors: [500, 503],
      async handler({ body, caller, origin, tenant }) {
        const { sessionId, user } = caller;
        const userId = user.id;
        switch (body.action) {
          case 'get-usage':
            return reply(200, presentUsage(await monthUsage(tenant, userId), planOfPerson(caller)));
          case 'enable-byok': {
            const owner = { userId, sessionId };
            await enableOwnKey({ tenant, secrets, providers }, owner, body, origin);
            return reply(200, { byok: await findByok(tenant, userId) });
          }
          case 'disable-byok':
            await disableOwnKeys(tenant, userId, body.provider, origin);
            return reply(200, { byok: await findByok(tenant, userId) });
          case 'buy-credits':
            return reply(200, await checkouts.start(tenant, userId, body.price));
          case 'create-checkout':
            return reply(200, await planCheckouts.start(tenant, userId, body.plan));
        }
      },
    }),
  ];
}

async function findBilling(
  tenant: TenantDatabase,
  userId: string,
): Promise<z.input<typeof billing>> {
  const [plan, storage, { balance, held }, ownKeys] = await Promise.all([
    findSubscription(tenant, userId, 'plan'),
    findSubscription(tenant, userId, 'storage'),
    creditBalance(tenant, userId),
    findByok(tenant, userId),
  ]);
  return {
    plan: plan?.holds && isPlan(plan.plan) ? plan.plan : null,
    status: statusOf(plan),
    source: plan?.source ?? null,
    periodEnd: plan?.periodEnd?.toISOString() ?? null,
    credits: { balance: formatAmount(balance), held: formatAmount(held), currency: 'USD' },
    byok: ownKeys,
    storage: presentStorage(storage),
    prices: PRICES,
  };
}

async function findByok(tenant: TenantDatabase, userId: string): Promise<z.input<typeof byok>> {
  const providers = await listOwnKeys(tenant, userId);
  return { enabled: providers.length > 0, providers };
}

function statusOf(subscription: CurrentSubscription | undefined) {
  if (subscription === undefined) return 'none';
  if (!subscription.holds) return 'ended';
  return subscription.status === 'past_due' ? 'past_due' : 'active';
}

function presentStorage(subscription: CurrentSubscription | undefined) {
  const plan = subscription?.holds && isStoragePlan(subscription.plan) ? subscription.plan : null;
  return { plan, bytes: plan === null ? 0 : STORAGE_LIMITS[plan].bytes };
}

function presentUsage({ calls, micros, month, quotaTokens }: MonthUsage, plan: Plan | undefined) {
  const limit = plan === undefined ? 0 : PLAN_LIMITS[plan].monthlyTokens;
  return {
    usage: {
      period: month,
      tokens: { used: quotaTokens, limit: Number.isFinite(limit) ? limit : null },
      cost: formatAmount(micros),
      calls,
    },
  };
}
