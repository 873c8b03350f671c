import { literal, Op } from 'sequelize';
import type { PaymentState, StoredCall, TransactionPurpose } from '../../../types/payment.js';
import { PLATFORM } from '../schema/policies.js';
import {
  bigint,
  boolean,
  index,
  integer,
  json,
  key,
  nullable,
  table,
  text,
  timestamp,
  unique,
  withDefault,
} from '../schema/table.js';

/** Payments on chains: stored before any transaction is signed. */
export const payments = table(
  'payments',
  {
    id: key(text()),
    /** Purpose of the payment; unique, so that repeated requests make one payment. */
    cause: text(),
    chainId: bigint(),
    /** Address that pays, in lower case. */
    signer: text(),
    calls: json<readonly StoredCall[]>(),
    /** Requested gas limit; null for the node's estimate. */
    gas: nullable(bigint()),
    state: withDefault(text<PaymentState>(), 'queued'),
    /** Reason why nothing was paid. */
    failure: nullable(text()),
    /** Nonce of the payment's present or last transaction. */
    nonce: nullable(bigint()),
    /** Hash of the mined transaction, or else of the newest. */
    hash: nullable(text()),
    blockNumber: nullable(bigint()),
    /** Number of failed attempts to sign a transaction. */
    attempts: withDefault(integer(), 0),
    requestedAt: withDefault(timestamp(), literal('now()')),
    /** Time when the payment is next sent to its signer's run, unless the run has it. */
    dueAt: withDefault(timestamp(), literal('now()')),
    settledAt: nullable(timestamp()),
  },
  [
    unique('payments_cause', ['cause']),
    index('payments_due', ['due_at'], { settled_at: null }),
    index('payments_of_signer', ['chain_id', 'signer', 'requested_at'], { settled_at: null }),
    index('payments_settled', ['settled_at'], { settled_at: { [Op.ne]: null } }),
    index('payments_requested', ['requested_at', 'id']),
  ],
  PLATFORM,
);

/** Signed transactions of payments, replaced ones included, since any of them may be mined. */
export const transactions = table(
  'transactions',
  {
    hash: key(text()),
    /** Null for a transaction that only fills a nonce gap. */
    paymentId: nullable(text()),
    chainId: bigint(),
    signer: text(),
    nonce: bigint(),
    purpose: text<TransactionPurpose>(),
    /** Signed bytes, broadcast as often as needed. */
    raw: text(),
    /** Maximum fee per unit of gas, and the miner's share of it. */
    maxFee: bigint(),
    priorityFee: bigint(),
    gas: bigint(),
    /** Fee that the platform's own wallet paid in base units of pathUSD, the payer, and the block. */
    fee: nullable(bigint()),
    feePayer: nullable(text()),
    feeBlock: nullable(text()),
    /** False once the transaction was replaced, or its nonce used by another program. */
    active: withDefault(boolean(), true),
    /** True if the node rejected the last broadcast. */
    refused: withDefault(boolean(), false),
    signedAt: withDefault(timestamp(), literal('now()')),
    /** Time when a node last accepted the transaction. */
    broadcastAt: nullable(timestamp()),
    /** Block in which the transaction was last found. */
    blockNumber: nullable(bigint()),
    /** Time when the transaction reached its confirmations. */
    finalAt: nullable(timestamp()),
  },
  [
    unique('transactions_active', ['chain_id', 'signer', 'nonce'], { active: true }),
    index('transactions_nonce', ['chain_id', 'signer', 'nonce']),
    index('transactions_payment', ['payment_id'], { payment_id: { [Op.ne]: null } }),
    index('transactions_final', ['final_at'], { final_at: { [Op.ne]: null } }),
  ],
  PLATFORM,
);
