import { creditsOf, debtOf, payDebt, transfer } from '../money/ledger/ledger.js';
import { NO_AGENT, requestNotification } from '../notifications/outbox.js';
import type { Database, TenantTransaction } from '../platform/database/database.js';
import type { CheckoutRow, ProcessorEventRow } from '../platform/database/models.js';
import { selectFrom } from '../platform/database/schema/table.js';
import { checkouts, processorEvents } from '../platform/database/tables/billing.js';
import { CENT } from '../types/money.js';
import type { ProcessorEventOutcome, ProcessorFact } from '../types/processor-events.js';
import { isDisputed, takenBack, type DatedFact } from './taken-back.js';

/** Books the payment processor's events. */
export class ProcessorEventEffects {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /**
   * Applies an event in one transaction, idempotently.
   * @returns undefined for an unknown event, `reading` for one whose details must be read from the processor.
   */
  async apply(id: string): Promise<Applied | undefined> {
    return this.#database.asPlatform().transaction(async (db) => {
      const [read] = await db.query<ProcessorEventRow>(
        `${selectFrom(processorEvents)} WHERE id = $id`,
        { id },
      );
      if (!read) return undefined;
      const checkout = await lockCheckout(db, read);
      const [event] = await db.query<ProcessorEventRow>(
        `${selectFrom(processorEvents)} WHERE id = $id FOR UPDATE`,
        { id },
      );
      if (!event || event.outcome !== null) return event?.outcome ?? undefined;
      const outcome = await outcomeOf(db, event, checkout);
      if (outcome === 'reading') return outcome;
      await db.query(
        'UPDATE processor_events SET applied_at = now(), outcome = $outcome WHERE id = $id',
        { id, outcome },
      );
      return outcome;
    });
  }
}

type Applied = ProcessorEventOutcome | 'reading';

/** Reports whether a fact may end a plan, if its payment is that of a plan: a lost dispute does, an open one does not. */
const mayEndPlan = (fact: ProcessorFact): boolean =>
  fact.kind === 'refunded' || (fact.kind === 'dispute' && fact.status === 'lost');

/** Locks the payment of an event and its checkout, which a payment names by our row's id, all else by the payment. */
async function lockCheckout(
  db: TenantTransaction,
  { fact, paymentIntent }: ProcessorEventRow,
): Promise<CheckoutRow | undefined> {
  // The events of one payment are applied one by one, also those that overtake the payment.
  if (paymentIntent !== null) await db.lock(`payment ${paymentIntent}`);
  const isPayment = fact.kind === 'payment';
  const [checkout] = await db.query<CheckoutRow>(
    `${selectFrom(checkouts)} WHERE ${isPayment ? 'id' : 'payment_intent'} = $named FOR UPDATE`,
    { named: isPayment ? fact.checkoutId : paymentIntent },
  );
  // Two checkouts of one user share the debt.
  if (checkout) await db.lock(`credits of ${checkout.userId}`);
  return checkout;
}

async function outcomeOf(
  db: TenantTransaction,
  event: ProcessorEventRow,
  checkout: CheckoutRow | undefined,
): Promise<Applied> {
  const { fact, paymentIntent } = event;
  if (fact.kind === 'subscription') return 'reading';
  if (fact.kind === 'unreadable') {
    await notify(db, event, event.id);
    return 'unmatched';
  }
  if (fact.kind !== 'payment') {
    // A refund or a dispute that overtakes its payment is booked with that payment.
    if (!checkout) return mayEndPlan(fact) ? 'reading' : 'unmatched';
    if (fact.currency !== checkout.currency) {
      await notify(db, event, event.id);
      return 'unmatched';
    }
    await settle(db, checkout, event);
    return 'booked';
  }
  const isOurs =
    checkout !== undefined &&
    (checkout.sessionId ?? fact.sessionId) === fact.sessionId &&
    (checkout.paymentIntent ?? paymentIntent) === paymentIntent &&
    checkout.cents === fact.cents &&
    checkout.currency === fact.currency;
  const isPaid = fact.isPaid && paymentIntent !== null;
  if (!isOurs || !isPaid) {
    // A report that was sent before the payment but arrives after it contains nothing new.
    if (isOurs && checkout.paidAt !== null) return 'booked';
    await notify(db, event, fact.sessionId);
    return isOurs ? 'unpaid' : 'unmatched';
  }
  await db.query(
    `UPDATE checkouts SET session_id = $sessionId, payment_intent = $paymentIntent,
            paid_at = coalesce(paid_at, now()) WHERE id = $id`,
    { id: checkout.id, sessionId: fact.sessionId, paymentIntent },
  );
  await transfer(db, {
    debit: 'processor',
    credit: creditsOf(checkout.userId),
    amount: BigInt(checkout.cents) * CENT,
    currency: 'usd',
    cause: `checkout:${checkout.id}`,
  });
  await settle(db, { ...checkout, paymentIntent }, event);
  return 'booked';
}

/**
 * Books the amount of a paid checkout that refunds and disputes have reversed so far, and pays the user's
 * debt.
 */
async function settle(
  db: TenantTransaction,
  { cents, currency, id, paymentIntent, takenBack: booked, userId }: CheckoutRow,
  event: ProcessorEventRow,
): Promise<void> {
  const facts = await db.query<DatedFact & { readonly id: string }>(
    `SELECT id, fact, happened_at AS "happenedAt" FROM processor_events
      WHERE payment_intent = $paymentIntent AND fact ->> 'currency' = $currency`,
    { paymentIntent, currency },
  );
  const taken = BigInt(takenBack(facts, cents)) * CENT;
  const change = taken - BigInt(booked);
  const moved = { currency: 'usd', cause: `reversal:${id}:${event.id}` } as const;
  if (change > 0n) {
    await transfer(db, { ...moved, debit: debtOf(userId), credit: 'processor', amount: change });
  } else if (change < 0n) {
    const credit = creditsOf(userId);
    await transfer(db, { ...moved, debit: 'processor', credit, amount: -change });
  }
  await db.query(
    'UPDATE checkouts SET taken_back = $taken, is_disputed = $disputed WHERE id = $id',
    { id, taken: taken.toString(), disputed: isDisputed(facts) },
  );
  await payDebt(db, userId, `debt:${id}:${event.id}`);
  await db.query(
    `UPDATE processor_events SET outcome = 'booked', applied_at = coalesce(applied_at, now())
      WHERE id = ANY ($counted) AND outcome IS DISTINCT FROM 'booked'`,
    { counted: facts.map((each) => each.id) },
  );
}

/** Notifies operators of a payment that cannot be credited, once for each `subject`. */
async function notify(
  db: TenantTransaction,
  event: ProcessorEventRow,
  subject: string,
): Promise<void> {
  await db.lock(`unmatched payment ${subject}`);
  const [known] = await db.query(
    `SELECT FROM processor_events
      WHERE fact ->> 'sessionId' = $subject AND outcome IN ('unpaid', 'unmatched') LIMIT 1`,
    { subject },
  );
  if (known) return;
  await requestNotification(db, {
    id: `payment-unmatched-${event.id}`,
    agent: NO_AGENT,
    event: 'payment_unmatched',
    eventId: event.eventId,
  });
}
