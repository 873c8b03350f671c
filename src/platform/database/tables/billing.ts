import { literal, Op } from 'sequelize';
import type { ProcessorEventOutcome, ProcessorFact } from '../../../types/processor-events.js';
import type { Plan, StoragePlan, SubscriptionKind } from '../../../types/plans.js';
import { ownedThrough, PLATFORM } from '../schema/policies.js';
import {
  boolean,
  decimal,
  index,
  integer,
  json,
  key,
  nullable,
  table,
  text,
  timestamp,
  unique,
  withDefault,
} from '../schema/table.js';

/** Purchases of credits, each stored before the payment processor makes its checkout. */
export const checkouts = table(
  'checkouts',
  {
    id: key(text()),
    userId: text(),
    cents: integer(),
    currency: text(),
    /** The checkout's id at the processor. */
    sessionId: nullable(text()),
    /** The payment at the processor, which refunds and disputes name. */
    paymentIntent: nullable(text()),
    /** Base units reversed by refunds and disputes. */
    takenBack: withDefault(decimal(38, 0), literal('0')),
    /** True while a dispute is open. */
    isDisputed: withDefault(boolean(), false),
    createdAt: withDefault(timestamp(), literal('now()')),
    paidAt: nullable(timestamp()),
    /** Time from which the checkout cannot be paid: the processor has ended it. */
    endedAt: nullable(timestamp()),
  },
  [
    unique('checkouts_session_key', ['session_id']),
    unique('checkouts_payment_key', ['payment_intent']),
    index('checkouts_user', ['user_id', 'id']),
    index('checkouts_unpaid', ['created_at'], { paid_at: null }),
    index('checkouts_open', ['created_at'], { paid_at: null, ended_at: null }),
  ],
  ownedThrough('user_id'),
);

/** Purchases of plans, each stored before the payment processor makes its checkout. */
export const subscriptionCheckouts = table(
  'subscription_checkouts',
  {
    id: key(text()),
    userId: text(),
    kind: text<SubscriptionKind>(),
    plan: text<Plan | StoragePlan>(),
    /** The checkout's id at the processor. */
    sessionId: nullable(text()),
    createdAt: withDefault(timestamp(), literal('now()')),
    /** Time from which the checkout cannot be paid: it is paid already, or expired. */
    endedAt: nullable(timestamp()),
  },
  [
    unique('subscription_checkouts_session_key', ['session_id']),
    index('subscription_checkouts_user', ['user_id', 'id']),
    index('subscription_checkouts_open', ['created_at'], { ended_at: null }),
    index('subscription_checkouts_ended', ['created_at'], { ended_at: { [Op.ne]: null } }),
  ],
  ownedThrough('user_id'),
);

/** Events of the payment processor, a row for each, however often it is delivered. */
export const processorEvents = table(
  'processor_events',
  {
    id: key(text()),
    /** The event's id at the processor. */
    eventId: text(),
    type: text(),
    paymentIntent: nullable(text()),
    fact: json<ProcessorFact>(),
    /** Time of the event at the processor, in whole seconds. */
    happenedAt: timestamp(),
    receivedAt: withDefault(timestamp(), literal('now()')),
    /** Time when the event is next sent to its workflow. */
    dueAt: withDefault(timestamp(), literal('now()')),
    appliedAt: nullable(timestamp()),
    outcome: nullable(text<ProcessorEventOutcome>()),
  },
  [
    unique('processor_events_event_key', ['event_id']),
    index('processor_events_waiting', ['due_at'], { applied_at: null }),
    index('processor_events_payment', ['payment_intent'], { payment_intent: { [Op.ne]: null } }),
    index('processor_events_unbooked', ['applied_at'], { outcome: { [Op.ne]: 'booked' } }),
  ],
  PLATFORM,
);
