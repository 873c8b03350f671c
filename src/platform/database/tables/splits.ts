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

/** What somebody pays to several at a time, from a wallet that is kept for their agent. */
export const RoyaltySplit = table(
  'royalty_splits',
  {
    id: key(serial()),
    userId: text(),
    agentId: text(),
    /** Names the request that made it: repeated, it meets this row. */
    requestKey: text(),
    /** That of which it is the settlement. */
    bookingId: nullable(text()),
    /** In lower case, as the token's. */
    fromAddress: text(),
    chainId: bigint(),
    tokenAddress: text(),
    name: text(),
    /** Base units. */
    totalAmount: decimal(24, 0),
    status: withDefault(text<SplitStatus>(), 'queued'),
    /** Why not all was paid. */
    error: nullable(text()),
    /** Which one it is at paying what is not paid. */
    attempt: withDefault(integer(), 1),
    /** When it is handed to its workflow, once more if it has been already. */
    dueAt: withDefault(timestamp(), literal('now()')),
    createdAt: withDefault(timestamp(), literal('now()')),
    /** When nothing was left under way. */
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

/** What each gets of a split: dealt when it is made, and the same ever after. */
export const RoyaltyPayout = table(
  'royalty_payouts',
  {
    splitId: key(bigint()),
    position: key(integer()),
    userId: text(),
    /** In lower case. */
    address: text(),
    /** 1/10,000 of a percent. */
    share: integer(),
    /** Base units. */
    amount: decimal(24, 0),
    status: text<PayoutStatus>(),
    /** The cause of the payment that it is in: once that is asked for, it may have been made. */
    payment: nullable(text()),
    /** The hash of the one that has paid it, or failed to. */
    transaction: nullable(text()),
  },
  [{ name: 'royalty_payouts_user', fields: ['user_id'] }],
  ownedThrough('user_id'),
);
