import { literal, Op } from 'sequelize';
import type { PaymentState, StoredCall, TransactionPurpose } from '../../../types/payment.js';
import { PLATFORM } from '../schema/policies.js';
import {
  bigint,
  boolean,
  integer,
  json,
  key,
  nullable,
  table,
  text,
  timestamp,
  withDefault,
} from '../schema/table.js';

/** What is to be paid on a chain: written before anything is signed, and kept for ever. */
export const payments = table(
  'payments',
  {
    id: key(text()),
    /** Why: one payment for each, however often it is asked for. */
    cause: text(),
    chainId: bigint(),
    /** Who pays, in lower case. */
    signer: text(),
    calls: json<readonly StoredCall[]>(),
    /** The limit that was asked for; null: as the node reckons. */
    gas: nullable(bigint()),
    state: withDefault(text<PaymentState>(), 'queued'),
    /** Why nothing was paid. */
    failure: nullable(text()),
    /** The one that it has, or had last. */
    nonce: nullable(bigint()),
    /** Of the transaction that was mined, else of the newest one. */
    hash: nullable(text()),
    blockNumber: nullable(bigint()),
    /** How often nothing could be signed for it. */
    attempts: withDefault(integer(), 0),
    requestedAt: withDefault(timestamp(), literal('now()')),
    /** When it is handed to the run of its signer, unless that has it already. */
    dueAt: withDefault(timestamp(), literal('now()')),
    settledAt: nullable(timestamp()),
  },
  [
    { name: 'payments_cause', unique: true, fields: ['cause'] },
    { name: 'payments_due', fields: ['due_at'], where: { settled_at: null } },
    {
      name: 'payments_of_signer',
      fields: ['chain_id', 'signer', 'requested_at'],
      where: { settled_at: null },
    },
    { name: 'payments_requested', fields: ['requested_at', 'id'] },
  ],
  PLATFORM,
);

/** What was signed for payments, the replaced ones included: whichever is mined counts. */
export const transactions = table(
  'transactions',
  {
    hash: key(text()),
    /** Null for what only fills a gap of nonces. */
    paymentId: nullable(text()),
    chainId: bigint(),
    signer: text(),
    nonce: bigint(),
    purpose: text<TransactionPurpose>(),
    /** As it is broadcast, however often. */
    raw: text(),
    /** Most that a unit of gas may cost, and what of it is the miner's. */
    maxFee: bigint(),
    priorityFee: bigint(),
    gas: bigint(),
    /** What the platform's own wallet has paid for it, in base units of pathUSD, and in which block. */
    fee: nullable(bigint()),
    feePayer: nullable(text()),
    feeBlock: nullable(text()),
    /** False once another one has its place, or somebody else its nonce. */
    active: withDefault(boolean(), true),
    /** Whether the node would not have it when it was last offered. */
    refused: withDefault(boolean(), false),
    signedAt: withDefault(timestamp(), literal('now()')),
    /** When a node last took it up. */
    broadcastAt: nullable(timestamp()),
    /** Where it was last seen to be mined. */
    blockNumber: nullable(bigint()),
    /** When that had its confirmations. */
    finalAt: nullable(timestamp()),
  },
  [
    {
      name: 'transactions_active',
      unique: true,
      fields: ['chain_id', 'signer', 'nonce'],
      where: { active: true },
    },
    { name: 'transactions_nonce', fields: ['chain_id', 'signer', 'nonce'] },
    {
      name: 'transactions_payment',
      fields: ['payment_id'],
      where: { payment_id: { [Op.ne]: null } },
    },
    { name: 'transactions_final', fields: ['final_at'], where: { final_at: { [Op.ne]: null } } },
  ],
  PLATFORM,
);
