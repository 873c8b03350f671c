import { literal, Op } from 'sequelize';
import {
  MOVING_STATES,
  OPEN_STATES,
  type PaymentSessionState,
} from '../../payment-sessions/states.js';
import { ownedThrough } from '../policies.js';
import { bigint, decimal, key, nullable, table, text, timestamp, withDefault } from '../table.js';

/** What wallets have held for what they buy here. Amounts are base units of pathUSD. */
export const paymentSessions = table(
  'payment_sessions',
  {
    /** No secret: runs, causes and logs name it. */
    id: key(text()),
    /** Whoever has opened it by a wallet that is kept for them, as long as there is their account. */
    userId: nullable(text()),
    /** Of the id that debits it: see `session-token.ts`. */
    tokenHash: text(),
    tokenEnd: text(),
    sealedToken: text(),
    /** The wallet's, in lower case. */
    address: text(),
    chainId: bigint(),
    /** The contract that holds the deposit, in lower case: a later one may be another. */
    escrow: text(),
    /** What the contract knows the hold by. */
    holdId: text(),
    /** Of the wallet's authorization, which is good once. */
    nonce: text(),
    /** Until when the authorization is good: whole seconds. */
    authorizationDeadline: timestamp(),
    deposit: decimal(24, 0),
    state: withDefault(text<PaymentSessionState>(), 'opening'),
    /** Of the voucher that is next. */
    nextSequence: withDefault(bigint(), literal('1')),
    /** The sum of its vouchers. */
    delivered: withDefault(decimal(24, 0), literal('0')),
    /** How much of that the treasury has for good. */
    settled: withDefault(decimal(24, 0), literal('0')),
    /** When what is delivered and not settled is to be; null while nothing is. */
    settlementDueAt: nullable(timestamp()),
    /** From when on the wallet can reclaim what is left, by the chain's clock; null until it is opened. */
    holdExpiresAt: nullable(timestamp()),
    /** When it is handed to its run, once more if it has been already. */
    dueAt: withDefault(timestamp(), literal('now()')),
    createdAt: withDefault(timestamp(), literal('now()')),
    openedAt: nullable(timestamp()),
    /** When no more debit was taken. */
    closingAt: nullable(timestamp()),
    closedAt: nullable(timestamp()),
    /** Why it was never opened. */
    failure: nullable(text()),
  },
  [
    { name: 'payment_sessions_token', unique: true, fields: ['token_hash'] },
    {
      name: 'payment_sessions_authorization',
      unique: true,
      fields: ['escrow', 'address', 'nonce'],
    },
    {
      name: 'payment_sessions_open',
      unique: true,
      fields: ['chain_id', 'address'],
      where: { state: { [Op.in]: OPEN_STATES } },
    },
    { name: 'payment_sessions_listed', fields: ['address', 'created_at', 'id'] },
    { name: 'payment_sessions_user', fields: ['user_id'] },
    {
      name: 'payment_sessions_due',
      fields: ['due_at'],
      where: { state: { [Op.in]: MOVING_STATES } },
    },
    {
      name: 'payment_sessions_aging',
      fields: ['opened_at'],
      where: { state: 'active' },
    },
    {
      name: 'payment_sessions_reverted',
      fields: ['created_at'],
      where: { failure: 'reverted' },
    },
    {
      name: 'payment_sessions_expiring',
      fields: ['hold_expires_at'],
      where: { state: 'active' },
    },
    {
      name: 'payment_sessions_settlement_due',
      fields: ['settlement_due_at'],
      where: { settlement_due_at: { [Op.ne]: null } },
    },
  ],
  ownedThrough('user_id'),
);
