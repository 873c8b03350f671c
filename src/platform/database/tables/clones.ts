import { literal } from 'sequelize';
import type { Specialization } from '../../../types/clone-terms.js';
import { ownedThrough } from '../schema/policies.js';
import {
  bigint,
  index,
  key,
  nullable,
  table,
  text,
  timestamp,
  unique,
  withDefault,
} from '../schema/table.js';

/** Transactions that have paid for a clone, each for one only, even after the clone is deleted. */
export const PaymentClaim = table(
  'payment_claims',
  {
    chainId: key(bigint()),
    /** Transaction hash in lower case. */
    hash: key(text()),
    cloneId: text(),
    userId: text(),
    claimedAt: withDefault(timestamp(), literal('now()')),
  },
  [],
  ownedThrough('user_id'),
);

/** State of a clone that is not yet an ordinary agent. */
export type CloneState = 'waiting' | 'handed-over' | 'failed';

/** Parent and payment of each agent that was created as a copy. */
export const Clone = table(
  'clones',
  {
    /** The clone's agent id. */
    id: key(text()),
    userId: text(),
    /** The parent, which may have been removed. */
    parentAgentId: text(),
    specialization: text<Specialization>(),
    chainId: bigint(),
    hash: text(),
    /** Payer's address in lower case. */
    payer: text(),
    /** Base units that the owner claims to have paid; the payment was at least this much. */
    amount: bigint(),
    /** Block in which the payment was last found. */
    block: bigint(),
    /** `waiting` until the payment is final, `handed-over` once its supervisor provisions it. */
    state: withDefault(text<CloneState>(), 'waiting'),
    /** Time when the payment was found to be final. */
    paidAt: nullable(timestamp()),
    /** Creator of the volume with the copy of the parent's memory; set once the copy is complete. */
    memoryMadeBy: nullable(text()),
    /** Latest requester, and the id of that request. */
    requestedBy: text(),
    requestId: text(),
    /** Time when the clone is next sent to its workflow. */
    dueAt: withDefault(timestamp(), literal('now()')),
    createdAt: withDefault(timestamp(), literal('now()')),
  },
  [
    unique('clones_payment_key', ['chain_id', 'hash']),
    index('clones_waiting', ['due_at'], { state: 'waiting' }),
  ],
  ownedThrough('user_id'),
);
