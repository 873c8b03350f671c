import { expect } from 'vitest';
import { ProcessorEventEffects } from '../../src/billing/apply-events.js';
import { ProcessorEvents } from '../../src/billing/receive-events.js';
import { checkLedger, LEDGER_CHECKS } from '../../src/money/ledger-check/check-ledger.js';
import { queryRows } from '../platform/database/catalog.js';
import { Random } from '../support/random.js';
import type { TestDatabase } from '../support/postgres.js';

/** Orders that are played at the same time. */
const LANES = 5;

const DAY_S = 86_400;
const START_S = 1_790_000_000;

const COMPLETED = 'checkout.session.completed';

/** Returns the events of a user's month with four purchases, whose ids end with the user's number. */
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
  ];
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
  for (const each of events) {
    await received.receive(Buffer.from(JSON.stringify(each)), undefined);
    const [row] = await platform.query<{ id: string }>(
      'SELECT id FROM processor_events WHERE event_id = $id',
      { id: each.id },
    );
    await effects.apply(row?.id ?? '');
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
  return { balances, checkouts, outcomes };
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
  const expected = await stateAfter(database, 0, monthOf(0));
  expect(expected.balances).toEqual([{ kind: 'user', balance: '80000000' }]);
  expect(expected.outcomes).toHaveLength(17);
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
