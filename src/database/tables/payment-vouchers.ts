import { literal } from 'sequelize';
import { seenWith } from '../policies.js';
import { bigint, decimal, key, table, text, timestamp, withDefault } from '../table.js';

/** What was delivered for payment sessions. Amounts are base units of pathUSD. */
export const paymentVouchers = table(
  'payment_vouchers',
  {
    id: key(text()),
    /** The row's id. */
    sessionId: text(),
    sequence: bigint(),
    amount: decimal(24, 0),
    /** What was delivered up to it, itself included. */
    cumulative: decimal(24, 0),
    plugin: text(),
    action: text(),
    createdAt: withDefault(timestamp(), literal('now()')),
  },
  [{ name: 'payment_vouchers_sequence', unique: true, fields: ['session_id', 'sequence'] }],
  seenWith('session_id', 'payment_sessions'),
);
