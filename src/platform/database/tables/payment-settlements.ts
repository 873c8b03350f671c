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
  withDefault,
} from '../schema/table.js';

/** Sums that were sent to the chain for payment sessions: each is paid at most once. */
export const paymentSettlements = table(
  'payment_settlements',
  {
    sessionId: key(text()),
    /** What the treasury is to have had of the hold, all in all, in base units. */
    cumulative: key(decimal(24, 0)),
    kind: key(text<SettlementKind>()),
    state: withDefault(text<SettlementState>(), 'requested'),
    /** Payments that were made for it: another one follows when one has failed. */
    attempts: withDefault(integer(), literal('1')),
    /** The cause of the newest of them. */
    payment: text(),
    transaction: nullable(text()),
    /** Before that nothing more is tried for it; null unless it has failed. */
    retryAt: nullable(timestamp()),
    /** When the newest payment was asked for. */
    requestedAt: withDefault(timestamp(), literal('now()')),
    endedAt: nullable(timestamp()),
  },
  [
    { name: 'payment_settlements_payment', unique: true, fields: ['payment'] },
    {
      name: 'payment_settlements_under_way',
      unique: true,
      fields: ['session_id'],
      where: { state: 'requested' },
    },
  ],
  PLATFORM,
);
