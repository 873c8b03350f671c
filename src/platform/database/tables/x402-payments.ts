import { literal, Op } from 'sequelize';
import type { X402PaymentState } from '../../../types/x402-payment-states.js';
import { ownedThrough } from '../schema/policies.js';
import {
  bigint,
  index,
  integer,
  key,
  nullable,
  table,
  text,
  timestamp,
  withDefault,
} from '../schema/table.js';

/** Payments requested from the x402 gateway. */
export const x402Payments = table(
  'x402_payments',
  {
    /** Key under which the payment is sent. */
    id: key(text()),
    /** Null once the account is deleted, like everything that describes the payment. */
    userId: nullable(text()),
    agentId: nullable(text()),
    /** Amount in base units. */
    amount: bigint(),
    currency: text(),
    recipient: nullable(text()),
    endpoint: nullable(text()),
    method: nullable(text()),
    state: withDefault(text<X402PaymentState>(), 'pending'),
    /** Number of times that the payment was sent. */
    attempt: withDefault(integer(), 1),
    createdAt: withDefault(timestamp(), literal('now()')),
    /** Time of the last attempt; the payment counts for this day. */
    sentAt: withDefault(timestamp(), literal('now()')),
    endedAt: nullable(timestamp()),
  },
  [
    index('x402_payments_day', ['sent_at', 'amount']),
    index('x402_payments_user', ['user_id', 'sent_at']),
    index('x402_payments_pending', ['sent_at'], { state: { [Op.eq]: 'pending' } }),
  ],
  ownedThrough('user_id'),
);
