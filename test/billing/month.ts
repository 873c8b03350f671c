import { expect } from 'vitest';
import { ProcessorEventEffects } from '../../src/billing/apply-events.js';
import { ProcessorReadings } from '../../src/billing/processor-readings.js';
import type { ProcessorSubscription } from '../../src/billing/processor-subscriptions.js';
import { ProcessorEvents } from '../../src/billing/receive-events.js';
import { SubscriptionStates } from '../../src/billing/subscription-states.js';
import { readAreas } from '../../src/platform/environment/read.js';
import { billingSettings } from '../../src/billing/settings.js';
import { checkLedger, LEDGER_CHECKS } from '../../src/money/ledger-check/check-ledger.js';
import { queryRows } from '../platform/database/catalog.js';
import { Random } from '../support/random.js';
import type { TestDatabase } from '../support/postgres.js';

/** Number of orders of events that are tried concurrently. */
const LANES = 5;

const DAY_S = 86_400;
const START_S = 1_790_000_000;

const COMPLETED = 'checkout.session.completed';

/** Returns the events of a user's month with four purchases and a plan, whose ids end with the user's number. */
function monthOf(user: number) {
  const event = (day: number, type: string, object: object) => ({
    id: `evt_${type.replaceAll('.', '_')}_${day}_${user}`,
    type,
    created: START_S + day * DAY_S,
    data: { object },
  });
  const paymentOf = (n: number) => ({ payment_intent: `pi_${n}_${user}`, currency: 'usd' });
  const session = (n: number, cents: number, status = 'paid') => ({
    ...paymentOf(n),
    id: `cs_test_${n}_${user}`,
    mode: 'payment',
    client_reference_id: checkoutOf(user, n),
    payment_status: status,
    amount_total: cents,
  });
  const charge = (n: number, refunded: number) => ({ ...paymentOf(n), amount_refunded: refunded });
  const refund = (n: number, amount: number) => ({
    ...paymentOf(n),
    id: `re_${n}_${user}`,
    amount,
    status: 'failed',
  });
  const dispute = (n: number, amount: number, status: string) => ({
    ...paymentOf(n),
    id: `dp_${n}_${user}`,
    amount,
    status,
  });
  const plan = { mode: 'subscription', subscription: `sub_${user}`, payment_status: 'paid' };
  const invoice = { parent: { subscription_details: { subscription: `sub_${user}` } } };
  const planPayment = { payment_intent: `pi_plan_${user}`, currency: 'gbp' };
  const planCharge = (refunded: number) => ({ ...planPayment, amount_refunded: refunded });
  return [
    event(1, COMPLETED, session(1, 1_000)),
    event(2, COMPLETED, session(2, 2_500, 'unpaid')),
    event(5, 'checkout.session.async_payment_succeeded', session(2, 2_500)),
    event(6, 'charge.refunded', charge(1, 300)),
    event(7, 'charge.refunded', charge(1, 500)),
    event(8, COMPLETED, session(3, 5_000)),
    event(9, 'charge.dispute.created', dispute(3, 5_000, 'needs_response')),
    event(10, 'charge.dispute.funds_withdrawn', dispute(3, 5_000, 'needs_response')),
    event(11, 'charge.dispute.updated', dispute(3, 5_000, 'under_review')),
    event(12, COMPLETED, session(4, 500)),
    event(13, 'charge.refunded', charge(2, 2_500)),
    event(20, 'refund.failed', refund(2, 2_500)),
    event(20, 'charge.refund.updated', refund(2, 2_500)),
    event(22, 'charge.dispute.closed', dispute(3, 5_000, 'won')),
    event(23, 'charge.dispute.funds_reinstated', dispute(3, 5_000, 'won')),
    event(24, 'charge.dispute.created', dispute(4, 500, 'needs_response')),
    event(28, 'charge.dispute.closed', dispute(4, 500, 'lost')),
    event(3, COMPLETED, { ...plan, id: `cs_plan_${user}` }),
    event(3, 'customer.subscription.created', { id: plan.subscription }),
    event(3, 'invoice.paid', invoice),
    event(14, 'customer.subscription.updated', { id: plan.subscription }),
    event(14, 'invoice.payment_failed', invoice),
    event(16, 'invoice.paid', invoice),
    event(16, 'customer.subscription.updated', { id: plan.subscription }),
    event(18, 'charge.refunded', planCharge(7_900)),
    event(19, 'charge.dispute.created', { ...dispute(9, 7_900, 'needs_response'), ...planPayment }),
    event(21, 'charge.dispute.closed', { ...dispute(9, 7_900, 'lost'), ...planPayment }),
    event(25, 'customer.subscription.deleted', { id: plan.subscription }),
  ];
}

const SETTINGS = readAreas({ billing: billingSettings }, {}).billing;

/** The payment processor, which cancels the plan of a user once its payment is refunded. */
class PlanOf {
  #isCancelled = false;
  readonly #user: number;

  constructor(user: number) {
    this.#user = user;
  }

  read = (id: string): Promise<ProcessorSubscription | undefined> => {
    const start = new Date();
    return Promise.resolve({
      id,
      status: this.#isCancelled ? 'canceled' : 'active',
      customerId: `cus_${this.#user}`,
      checkoutId: `plan-${this.#user}`,
      itemId: 'si_1',
      price: { id: 'price_1', cents: 7_900, currency: 'gbp', interval: 'month' },
      createdAt: start,
      periodStart: start,
      periodEnd: new Date(start.getTime() + 30 * DAY_S * 1_000),
      endsAt: null,
      endedAt: this.#isCancelled ? new Date() : null,
      isChangeUnpaid: false,
      unpaidSince: null,
    });
  };

  cancel = () => {
    this.#isCancelled = true;
    return Promise.resolve();
  };

  findByPayment = (paymentIntent: string) =>
    Promise.resolve(
      paymentIntent === `pi_plan_${this.#user}`
        ? { subscriptionId: `sub_${this.#user}`, isRefunded: true }
        : undefined,
    );

  refundAndCancel = () => Promise.reject(new Error('There is no second plan'));
}

const checkoutOf = (user: number, n: number) => `checkout-${n}-${user}`;

/** Receives and applies events one after the other. @returns balances, checkouts and outcomes of the user. */
async function stateAfter(
  { db }: TestDatabase,
  user: number,
  events: readonly { readonly id: string }[],
) {
  const platform = db.asPlatform();
  const received = new ProcessorEvents(db, {
    verify: (body) => Promise.resolve(JSON.parse(body.toString())),
  });
  const effects = new ProcessorEventEffects(db);
  const processor = new PlanOf(user);
  const states = new SubscriptionStates({ database: db, processor, settings: SETTINGS });
  const readings = new ProcessorReadings({ database: db, processor, states });
  for (const each of events) {
    await received.receive(Buffer.from(JSON.stringify(each)), undefined);
    const [row] = await platform.query<{ id: string }>(
      'SELECT id FROM processor_events WHERE event_id = $id',
      { id: each.id },
    );
    if ((await effects.apply(row?.id ?? '')) === 'reading') await readings.read(row?.id ?? '');
  }
  const balances = await platform.query(
    `SELECT split_part(name, ':', 1) AS kind, balance::text FROM ledger_accounts
      WHERE user_id = $user AND balance <> 0 ORDER BY name`,
    { user: String(user) },
  );
  const checkouts = await platform.query(
    `SELECT cents, taken_back::text, is_disputed, paid_at IS NOT NULL AS paid,
            payment_intent IS NOT NULL AS matched
       FROM checkouts WHERE user_id = $user ORDER BY cents`,
    { user: String(user) },
  );
  const outcomes = await platform.query(
    `SELECT type, happened_at, outcome FROM processor_events WHERE event_id LIKE '%\\_' || $user
      ORDER BY type, happened_at`,
    { user: String(user) },
  );
  const plans = await platform.query(
    `SELECT kind, plan, status, source, ended_at IS NOT NULL AS ended FROM subscriptions
      WHERE user_id = $user`,
    { user: String(user) },
  );
  return { balances, checkouts, outcomes, plans };
}

/** Plays a month of events in random orders with repetitions, each for another user, and compares the states. */
export async function playOrders(database: TestDatabase, orders: number): Promise<void> {
  const cents = [1_000, 2_500, 5_000, 500];
  const rows = Array.from({ length: orders + 1 }, (_, user) =>
    cents.map((each, n) => `('${checkoutOf(user, n + 1)}', '${user}', ${each}, 'usd')`),
  );
  await queryRows(
    database.ownerUrl,
    `INSERT INTO checkouts (id, user_id, cents, currency) VALUES ${rows.flat().join()}`,
  );
  await queryRows(
    database.ownerUrl,
    `INSERT INTO users (id, email, name, created_at, updated_at)
     SELECT n, n || '@example.com', n, now(), now() FROM generate_series(0, ${orders}) n;
     INSERT INTO subscription_checkouts (id, user_id, kind, plan)
     SELECT 'plan-' || n, n, 'plan', 'solo' FROM generate_series(0, ${orders}) n`,
  );
  const expected = await stateAfter(database, 0, monthOf(0));
  expect(expected.balances).toEqual([{ kind: 'user', balance: '80000000' }]);
  expect(expected.outcomes).toHaveLength(28);
  expect(expected.plans).toMatchObject([{ plan: 'solo', status: 'cancelled', ended: true }]);
  await inLanes(LANES, orders, async (seed) => {
    const random = new Random(seed);
    const month = monthOf(seed);
    const repeated = month.filter(() => random.isOneIn(3));
    const state = await stateAfter(database, seed, random.shuffled([...month, ...repeated]));
    expect(state, `seed ${seed}`).toEqual(expected);
  });
  const { differences } = await checkLedger(database.db, LEDGER_CHECKS);
  expect(differences).toEqual([]);
}

/** Runs `work` for 1 to `count`, `lanes` at a time. */
async function inLanes(lanes: number, count: number, work: (n: number) => Promise<void>) {
  let last = 0;
  const lane = async () => {
    while (last < count) await work((last += 1));
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}
