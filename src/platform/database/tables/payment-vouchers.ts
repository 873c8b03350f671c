import { literal } from 'sequelize';
import { seenWith } from '../schema/policies.js';
import {
  bigint,
  decimal,
  key,
  table,
  text,
  timestamp,
  unique,
  withDefault,
} from '../schema/table.js';

/** Vouchers for deliveries of payment sessions. Amounts are base units of pathUSD. */
export const paymentVouchers = table(
  'payment_vouchers',
  {
    id: key(text()),
    sessionId: text(),
    sequence: bigint(),
    amount: decimal(24, 0),
    /** Total delivered, this voucher included. */
    cumulative: decimal(24, 0),
    plugin: text(),
    action: text(),
    createdAt: withDefault(timestamp(), literal('now()')),
  },
  [unique('payment_vouchers_sequence', ['session_id', 'sequence'])],
  seenWith('session_id', 'payment_sessions'),
);
