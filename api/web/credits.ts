import * as z from 'zod';
import { listCreditEntries, type CreditEntry } from '../../src/billing/credits.js';
import type { CreditPrice } from '../../src/types/credit-prices.js';
import { creditBalance } from '../../src/money/ledger/ledger.js';
import { formatAmount, formattedAmount } from '../../src/types/money.js';
import type { TenantDatabase } from '../../src/platform/database/database.js';
import { anonymous } from '../auth/anonymous.js';
import { person } from '../auth/person.js';
import { session } from '../auth/session.js';
import { area } from '../http/area.js';
import { rawBody } from '../http/body-format.js';
import { DEFAULT_PAGE, MAX_PAGE, nextPageLink, pageQuery } from '../http/pagination.js';
import { redirect, reply } from '../http/reply.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';

const TOP_UP = '/api/wallet/top-up';
const CREDITS = '/api/credits';

const billing = area({ tag: 'Billing', auth: session });

export const checkout = z
  .strictObject({
    url: z.string().describe("The payment processor's page on which the checkout is paid"),
    sessionId: z.string().describe("The checkout's id at the payment processor"),
  })
  .meta({ id: 'Checkout' });

/** Amounts of credits on sale, in cents. */
const AMOUNTS = ['500', '1000', '2500', '5000'] as const;

/** The name of credits on sale. */
export const creditPrice = z.enum(
  AMOUNTS.map((amount) => `credits-${amount}` as const satisfies CreditPrice),
  { error: 'Invalid price' },
);

const entry = z.strictObject({
  id: z.string(),
  amount: formattedAmount.describe('US dollars; negative for a debit'),
  reason: z
    .string()
    .describe('Kind of change, such as `checkout`, `reversal`, `gateway` or `referral`'),
  reference: z.string().nullable().describe('The id of the checkout or of the run'),
  createdAt: z.iso.datetime(),
});

const credits = z
  .strictObject({
    balance: formattedAmount.describe('Bought and granted credits in US dollars'),
    held: formattedAmount.describe('The part of the balance that is held for runs in progress'),
    currency: z.literal('USD'),
    referralCode: z.string().nullable(),
    entries: z.array(entry),
  })
  .meta({ id: 'Credits' });

const present = ({ amount, createdAt, id, reason, reference }: CreditEntry) => ({
  id,
  amount: formatAmount(amount),
  reason,
  reference,
  createdAt: createdAt.toISOString(),
});

async function referralCodeOf(tenant: TenantDatabase, userId: string): Promise<string | null> {
  const [user] = await tenant.query<{ code: string | null }>(
    'SELECT referral_code AS code FROM users WHERE id = $userId',
    { userId },
  );
  return user?.code ?? null;
}

/** Creates the endpoints that sell credits and list them (spec 4.9, 4.15). */
export function creditEndpoints({ checkouts, processorEvents }: WebDependencies) {
  return [
    billing({
      method: 'GET',
      path: TOP_UP,
      operationId: 'topUpWallet',
      summary: 'Start a purchase of credits at the payment processor',
      query: z.object({
        amount: z.enum(AMOUNTS).default('1000').describe('Cents'),
      }),
      limitOfCaller: LIMITS.checkoutsOfUser,
      responses: { 200: checkout },
      errors: [500],
      handler: async ({ caller, query, tenant }) =>
        reply(200, await checkouts.start(tenant, caller.user.id, `credits-${query.amount}`)),
    }),
    billing({
      method: 'GET',
      path: '/api/payproc/credits',
      operationId: 'buyCredits',
      summary: "Start a purchase of credits, and redirect to the payment processor's page",
      query: z.object({
        price: creditPrice.describe('Credits on sale'),
      }),
      limitOfCaller: LIMITS.checkoutsOfUser,
      responses: { 303: 'redirect' },
      errors: [500],
      async handler({ caller, query, tenant }) {
        const { url } = await checkouts.start(tenant, caller.user.id, query.price);
        return redirect(303, url);
      },
    }),
    billing({
      method: 'POST',
      path: TOP_UP,
      operationId: 'receiveProcessorEvent',
      summary: 'Report an event of the payment processor; its signature authenticates it',
      auth: anonymous,
      headers: z.object({
        'stripe-signature': z.string().max(4_096).optional().describe('Signature of the raw body'),
      }),
      body: rawBody('application/json'),
      limit: LIMITS.processorEvents,
      responses: { 200: z.strictObject({ received: z.literal(true) }) },
      errors: [500],
      async handler({ body, headers }) {
        await processorEvents.receive(body, headers['stripe-signature']);
        return reply(200, { received: true });
      },
    }),
    billing({
      method: 'GET',
      path: CREDITS,
      operationId: 'listCredits',
      summary: 'Get your credits, and their changes, newest first',
      auth: person,
      keyScope: 'any',
      query: z.object(pageQuery(z.tuple([z.string().regex(/^\d{1,18}$/)]), MAX_PAGE, DEFAULT_PAGE)),
      responses: { 200: credits },
      async handler({ caller, query, tenant }) {
        const userId = caller.user.id;
        const page = { limit: query.limit, before: query.cursor?.[0] };
        const [{ balance, held }, referralCode, { items, next }] = await Promise.all([
          creditBalance(tenant, userId),
          referralCodeOf(tenant, userId),
          listCreditEntries(tenant, userId, page),
        ]);
        return reply(
          200,
          {
            balance: formatAmount(balance),
            held: formatAmount(held),
            currency: 'USD',
            referralCode,
            entries: items.map(present),
          },
          nextPageLink(CREDITS, query, next),
        );
      },
    }),
  ];
}
