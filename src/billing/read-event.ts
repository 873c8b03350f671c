import * as z from 'zod';
import type { ProcessorFact } from '../types/processor-events.js';

/** An event of the payment processor that concerns a payment of credits, or a subscription. */
export interface ProcessorEvent {
  readonly eventId: string;
  readonly type: string;
  readonly happenedAt: Date;
  /** The payment that a refund, a dispute or a paid checkout belongs to. */
  readonly paymentIntent: string | null;
  readonly fact: ProcessorFact;
}

const id = z.string().regex(/^[\w-]{1,255}$/);

/** An object, sent whole or as its id. */
const reference = z.union([id, z.object({ id }).transform((object) => object.id)]);

const cents = z.int().min(0).max(2_147_483_647);

const currency = z.string().regex(/^[a-z]{3}$/);

const event = z.object({
  id,
  type: z.string().max(255),
  created: z.int().min(0).max(253_402_300_799),
  data: z.object({ object: z.unknown() }),
});

const session = z.object({
  id,
  mode: z.string(),
  client_reference_id: z.string().nullish(),
  payment_status: z.string(),
  payment_intent: reference.nullish(),
  amount_total: cents.nullish(),
  currency: currency.nullish(),
  subscription: reference.nullish(),
});

const changedSubscription = z.object({ id });

const invoice = z.object({
  parent: z
    .object({ subscription_details: z.object({ subscription: reference }).nullish() })
    .nullish(),
});

const charge = z.object({ payment_intent: reference, amount_refunded: cents, currency });

const refund = z.object({
  id,
  payment_intent: reference,
  amount: cents,
  currency,
  status: z.string().nullish(),
});

const dispute = z.object({
  id,
  payment_intent: reference,
  amount: cents,
  currency,
  status: z.string().regex(/^[a-z_]{1,64}$/),
});

type Read = Pick<ProcessorEvent, 'fact' | 'paymentIntent'>;

/** Makes a reader of an event's object; the reader returns undefined for an object that needs no action. */
const reading =
  <S extends z.ZodType>(schema: S, factOf: (object: z.output<S>) => Read | undefined) =>
  (object: unknown): Read | undefined => {
    const read = schema.safeParse(object);
    if (read.success) return factOf(read.data);
    return { paymentIntent: null, fact: { kind: 'unreadable' } };
  };

/** Returns the fact that a subscription may have changed. */
const ofSubscription = (subscriptionId: string): Read => ({
  paymentIntent: null,
  fact: { kind: 'subscription', subscriptionId },
});

const payment = reading(session, (object) => {
  if (object.mode === 'subscription' && object.subscription) {
    return ofSubscription(object.subscription);
  }
  if (object.mode !== 'payment') return undefined;
  return {
    paymentIntent: object.payment_intent ?? null,
    fact: {
      kind: 'payment',
      sessionId: object.id,
      checkoutId: id.safeParse(object.client_reference_id).data ?? null,
      cents: object.amount_total ?? null,
      currency: object.currency ?? null,
      isPaid: object.payment_status === 'paid',
    },
  };
});

const subscription = reading(changedSubscription, (object) => ofSubscription(object.id));

const invoiced = reading(invoice, ({ parent }) => {
  const changed = parent?.subscription_details?.subscription;
  return changed === undefined ? undefined : ofSubscription(changed);
});

const refunded = reading(charge, (object) => ({
  paymentIntent: object.payment_intent,
  fact: { kind: 'refunded', cents: object.amount_refunded, currency: object.currency },
}));

const FAILED = ['failed', 'canceled'];

const failedRefund = reading(refund, (object) => {
  if (!FAILED.includes(object.status ?? '')) return undefined;
  return {
    paymentIntent: object.payment_intent,
    fact: {
      kind: 'refund-failed',
      refundId: object.id,
      cents: object.amount,
      currency: object.currency,
    },
  };
});

const disputed = reading(dispute, (object) => ({
  paymentIntent: object.payment_intent,
  fact: {
    kind: 'dispute',
    disputeId: object.id,
    status: object.status,
    cents: object.amount,
    currency: object.currency,
  },
}));

/** Types of events that are stored; all others need no action. */
const READERS: ReadonlyMap<string, (object: unknown) => Read | undefined> = new Map([
  ['checkout.session.completed', payment],
  ['checkout.session.async_payment_succeeded', payment],
  ['charge.refunded', refunded],
  ['charge.refund.updated', failedRefund],
  ['refund.updated', failedRefund],
  ['refund.failed', failedRefund],
  ['charge.dispute.created', disputed],
  ['charge.dispute.updated', disputed],
  ['charge.dispute.closed', disputed],
  ['charge.dispute.funds_withdrawn', disputed],
  ['charge.dispute.funds_reinstated', disputed],
  ['customer.subscription.created', subscription],
  ['customer.subscription.updated', subscription],
  ['customer.subscription.deleted', subscription],
  ['customer.subscription.paused', subscription],
  ['customer.subscription.resumed', subscription],
  ['customer.subscription.pending_update_applied', subscription],
  ['customer.subscription.pending_update_expired', subscription],
  ['invoice.paid', invoiced],
  ['invoice.payment_failed', invoiced],
  ['invoice.voided', invoiced],
  ['invoice.marked_uncollectible', invoiced],
]);

/** Reads a verified event; undefined for an event that needs no action. */
export function readEvent(json: unknown): ProcessorEvent | undefined {
  const { data } = event.safeParse(json);
  const read = data && READERS.get(data.type)?.(data.data.object);
  if (!read) return undefined;
  return {
    eventId: data.id,
    type: data.type,
    happenedAt: new Date(data.created * 1_000),
    ...read,
  };
}
