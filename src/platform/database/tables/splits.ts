import { literal, Op } from 'sequelize';
import { OPEN_STATUSES, type PayoutStatus, type SplitStatus } from '../../../types/split-states.js';
import { ownedThrough } from '../schema/policies.js';
import {
  bigint,
  decimal,
  integer,
  key,
  nullable,
  serial,
  table,
  text,
  timestamp,
  withDefault,
} from '../schema/table.js';

/** Payments to several recipients from an agent's wallet whose key is stored here. */
export const RoyaltySplit = table(
  'royalty_splits',
  {
    id: key(serial()),
    userId: text(),
    agentId: text(),
    /** Key of the creating request; a retry finds this row. */
    requestKey: text(),
    /** The booking that the split settles. */
    bookingId: nullable(text()),
    /** Lower case, like `tokenAddress`. */
    fromAddress: text(),
    chainId: bigint(),
    tokenAddress: text(),
    name: text(),
    /** Total in base units. */
    totalAmount: decimal(24, 0),
    status: withDefault(text<SplitStatus>(), 'queued'),
    /** Reason why the split was not paid in full. */
    error: nullable(text()),
    /** Number of the current attempt to pay the unpaid rest. */
    attempt: withDefault(integer(), 1),
    /** When the split is next sent to its workflow. */
    dueAt: withDefault(timestamp(), literal('now()')),
    createdAt: withDefault(timestamp(), literal('now()')),
    /** When no payment was in flight any more. */
    completedAt: nullable(timestamp()),
  },
  [
    { name: 'royalty_splits_id_user', unique: true, fields: ['id', 'user_id'] },
    { name: 'royalty_splits_request', unique: true, fields: ['user_id', 'request_key'] },
    { name: 'royalty_splits_booking', unique: true, fields: ['user_id', 'booking_id'] },
    {
      name: 'royalty_splits_paying',
      unique: true,
      fields: ['chain_id', 'from_address'],
      where: { status: 'processing' },
    },
    {
      name: 'royalty_splits_due',
      fields: ['due_at'],
      where: { status: { [Op.in]: OPEN_STATUSES } },
    },
    { name: 'royalty_splits_user', fields: ['user_id', 'id'] },
  ],
  ownedThrough('user_id'),
);

/** Amounts for the recipients of a split, fixed when it is created. */
export const RoyaltyPayout = table(
  'royalty_payouts',
  {
    splitId: key(bigint()),
    position: key(integer()),
    userId: text(),
    /** Address in lower case. */
    address: text(),
    /** Share in units of 1/10,000 percent. */
    share: integer(),
    /** Amount in base units. */
    amount: decimal(24, 0),
    status: text<PayoutStatus>(),
    /** Cause of the payment that includes the payout; once requested, it may have been made. */
    payment: nullable(text()),
    /** Hash of the transaction that paid it, or failed to. */
    transaction: nullable(text()),
  },
  [{ name: 'royalty_payouts_user', fields: ['user_id'] }],
  ownedThrough('user_id'),
);
