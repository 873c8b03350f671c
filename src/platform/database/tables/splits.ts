import { literal, Op } from 'sequelize';
import { OPEN_STATUSES, type PayoutStatus, type SplitStatus } from '../../../types/split-states.js';
import { ownedThrough } from '../schema/policies.js';
import {
  bigint,
  decimal,
  index,
  integer,
  key,
  nullable,
  serial,
  table,
  text,
  timestamp,
  unique,
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
    /** Time when the split is next sent to its workflow. */
    dueAt: withDefault(timestamp(), literal('now()')),
    createdAt: withDefault(timestamp(), literal('now()')),
    /** Time when no payment was in flight any more. */
    completedAt: nullable(timestamp()),
  },
  [
    unique('royalty_splits_id_user', ['id', 'user_id']),
    unique('royalty_splits_request', ['user_id', 'request_key']),
    unique('royalty_splits_booking', ['user_id', 'booking_id']),
    unique('royalty_splits_paying', ['chain_id', 'from_address'], { status: 'processing' }),
    index('royalty_splits_due', ['due_at'], { status: { [Op.in]: OPEN_STATUSES } }),
    index('royalty_splits_user', ['user_id', 'id']),
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
  [index('royalty_payouts_user', ['user_id'])],
  ownedThrough('user_id'),
);
