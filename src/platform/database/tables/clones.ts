import { literal } from 'sequelize';
import type { Specialization } from '../../../types/clone-terms.js';
import { ownedThrough } from '../schema/policies.js';
import { bigint, key, nullable, table, text, timestamp, withDefault } from '../schema/table.js';

/**
 * Transactions that have paid for a clone: each for one, ever, also when that or its owner's account is
 * no more.
 */
export const PaymentClaim = table(
  'payment_claims',
  {
    chainId: key(bigint()),
    /** In lower case. */
    hash: key(text()),
    cloneId: text(),
    userId: text(),
    claimedAt: withDefault(timestamp(), literal('now()')),
  },
  [],
  ownedThrough('user_id'),
);

/** How far a clone is that is no agent like any other yet. */
export type CloneState = 'waiting' | 'handed-over' | 'failed';

/** Of each agent that was made as a copy of another: of which, for what payment. */
export const Clone = table(
  'clones',
  {
    /** The agent's own. */
    id: key(text()),
    userId: text(),
    /** May be no more. */
    parentAgentId: text(),
    specialization: text<Specialization>(),
    chainId: bigint(),
    hash: text(),
    /** Address in lower case. */
    payer: text(),
    /** Base units that its owner says to have paid, and at least has. */
    amount: bigint(),
    /** The block that the payment was found in last. */
    block: bigint(),
    /** `waiting` until the payment is final, `handed-over` when its supervisor provisions it. */
    state: withDefault(text<CloneState>(), 'waiting'),
    /** When the payment was found to be final. */
    paidAt: nullable(timestamp()),
    /** What has made the volume that its parent's memory was copied to, when it was all there. */
    memoryMadeBy: nullable(text()),
    /** Who asked for it last, and by which request. */
    requestedBy: text(),
    requestId: text(),
    /** When it is handed to its workflow, or handed over again. */
    dueAt: withDefault(timestamp(), literal('now()')),
    createdAt: withDefault(timestamp(), literal('now()')),
  },
  [
    { name: 'clones_payment_key', unique: true, fields: ['chain_id', 'hash'] },
    { name: 'clones_waiting', fields: ['due_at'], where: { state: 'waiting' } },
  ],
  ownedThrough('user_id'),
);
