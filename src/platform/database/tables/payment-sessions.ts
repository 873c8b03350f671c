import { literal, Op } from 'sequelize';
import {
  MOVING_STATES,
  OPEN_STATES,
  type PaymentSessionState,
} from '../../../types/payment-session-states.js';
import { ownedThrough } from '../schema/policies.js';
import {
  bigint,
  decimal,
  index,
  key,
  nullable,
  table,
  text,
  timestamp,
  unique,
  withDefault,
} from '../schema/table.js';

/** Deposits that wallets hold for purchases here. Amounts are base units of pathUSD. */
export const paymentSessions = table(
  'payment_sessions',
  {
    /** Not a secret: runs, causes and logs contain it. */
    id: key(text()),
    /** User who opened the session with a wallet whose key is stored here; null once the account is deleted. */
    userId: nullable(text()),
    /** Parts of the session token that authorizes debits: see `session-token.ts`. */
    tokenHash: text(),
    tokenEnd: text(),
    sealedToken: text(),
    /** Address of the wallet, in lower case. */
    address: text(),
    chainId: bigint(),
    /** Contract that holds the deposit, in lower case; later sessions may use a different contract. */
    escrow: text(),
    holdId: text(),
    /** Nonce of the wallet's authorization, which is valid once. */
    nonce: text(),
    /** End of the authorization's validity, in whole seconds. */
    authorizationDeadline: timestamp(),
    deposit: decimal(24, 0),
    state: withDefault(text<PaymentSessionState>(), 'opening'),
    nextSequence: withDefault(bigint(), literal('1')),
    /** Sum of the session's vouchers. */
    delivered: withDefault(decimal(24, 0), literal('0')),
    /** Part of `delivered` that the treasury has received, final on chain. */
    settled: withDefault(decimal(24, 0), literal('0')),
    /** Time when the unsettled part of `delivered` must be settled; null if there is none. */
    settlementDueAt: nullable(timestamp()),
    /** Time when the wallet may reclaim the rest, by the chain's clock; null until the session is opened. */
    holdExpiresAt: nullable(timestamp()),
    /** Time when the session is next sent to its run. */
    dueAt: withDefault(timestamp(), literal('now()')),
    createdAt: withDefault(timestamp(), literal('now()')),
    openedAt: nullable(timestamp()),
    /** Since when debits are refused. */
    closingAt: nullable(timestamp()),
    closedAt: nullable(timestamp()),
    /** Reason why the session was never opened. */
    failure: nullable(text()),
  },
  [
    unique('payment_sessions_token', ['token_hash']),
    unique('payment_sessions_authorization', ['escrow', 'address', 'nonce']),
    unique('payment_sessions_open', ['chain_id', 'address'], { state: { [Op.in]: OPEN_STATES } }),
    index('payment_sessions_listed', ['address', 'created_at', 'id']),
    index('payment_sessions_user', ['user_id']),
    index('payment_sessions_due', ['due_at'], { state: { [Op.in]: MOVING_STATES } }),
    index('payment_sessions_aging', ['opened_at'], { state: 'active' }),
    index('payment_sessions_reverted', ['created_at'], { failure: 'reverted' }),
    index('payment_sessions_closed', ['closed_at'], { closed_at: { [Op.ne]: null } }),
    index('payment_sessions_failed', ['created_at'], { state: 'failed' }),
    index('payment_sessions_expiring', ['hold_expires_at'], { state: 'active' }),
    index('payment_sessions_settlement_due', ['settlement_due_at'], {
      settlement_due_at: { [Op.ne]: null },
    }),
  ],
  ownedThrough('user_id'),
);
