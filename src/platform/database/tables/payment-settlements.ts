import { literal } from 'sequelize';
import type { SettlementKind, SettlementState } from '../../../types/payment-session-states.js';
import { PLATFORM } from '../schema/policies.js';
import {
  decimal,
  integer,
  key,
  nullable,
  table,
  text,
  timestamp,
  unique,
  withDefault,
} from '../schema/table.js';

/** Settlements of payment sessions on chain; each is paid at most once. */
export const paymentSettlements = table(
  'payment_settlements',
  {
    sessionId: key(text()),
    /** Total that the treasury has received from the hold after this settlement, in base units. */
    cumulative: key(decimal(24, 0)),
    kind: key(text<SettlementKind>()),
    state: withDefault(text<SettlementState>(), 'requested'),
    /** Payments made so far; a failed one is followed by another. */
    attempts: withDefault(integer(), literal('1')),
    /** Cause of the latest payment. */
    payment: text(),
    transaction: nullable(text()),
    /** Earliest time of the next attempt; null unless the last one failed. */
    retryAt: nullable(timestamp()),
    /** Time when the latest payment was requested. */
    requestedAt: withDefault(timestamp(), literal('now()')),
    endedAt: nullable(timestamp()),
  },
  [
    unique('payment_settlements_payment', ['payment']),
    unique('payment_settlements_under_way', ['session_id'], { state: 'requested' }),
  ],
  PLATFORM,
);
