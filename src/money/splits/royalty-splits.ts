import { isDeepStrictEqual } from 'node:util';
import type { Hex } from 'viem';
import { recordAudit } from '../../platform/audit/audit.js';
import type { Requester } from '../../platform/audit/requester.js';
import type { TenantDatabase, TenantTransaction } from '../../platform/database/database.js';
import type { RoyaltyPayoutRow, RoyaltySplitRow } from '../../platform/database/models.js';
import { selectFrom } from '../../platform/database/schema/table.js';
import { RoyaltyPayout, RoyaltySplit } from '../../platform/database/tables/splits.js';
import {
  ConflictError,
  NotFoundError,
  TooManyRequestsError,
  UnavailableError,
  UnprocessableError,
} from '../../lib/errors.js';
import { allocateByShares } from '../../types/money.js';
import type { GasBudget } from '../gas/gas-budget.js';
import { storedWalletOf } from '../wallets/agent-wallets.js';
import { OPEN_STATUSES, RETRIED_STATUSES } from '../../types/split-states.js';
import { gasFor, isPaidByOperator, splitCause } from './split-gas.js';

/** Maximum number of open splits of one user; further ones are rejected. */
export const MAX_OPEN_SPLITS = 100;
/** Seconds in which a split in progress may end. */
const RETRY_AFTER_S = 10;

export interface SplitToken {
  readonly chainId: number;
  /** In lower case; undefined if none is configured: splits are then unavailable. */
  readonly address: Hex | undefined;
}

export interface Recipient {
  /** In lower case. */
  readonly address: Hex;
  /** Unit: 1/10,000 of a percent; the shares of all recipients add up to 100 %. */
  readonly share: bigint;
}

export interface NewSplit {
  readonly userId: string;
  readonly agentId: string;
  /** A wallet stored for the agent, in lower case. */
  readonly fromAddress: Hex;
  readonly name: string;
  /** Base units. */
  readonly totalAmount: bigint;
  readonly recipients: readonly Recipient[];
  /** The booking that the split settles; it has only one settlement. */
  readonly bookingId?: string | undefined;
}

/** A split as returned to the client that requests it. */
export type QueuedSplit = Pick<RoyaltySplitRow, 'id' | 'status'>;

export interface SplitWithPayouts {
  readonly split: RoyaltySplitRow;
  readonly payouts: readonly RoyaltyPayoutRow[];
}

export interface SplitsWanted {
  readonly userId: string;
  /** True for splits that settle a booking, false for others; all by default. */
  readonly settling?: boolean;
  readonly limit: number;
  /** Last id of the previous page. */
  readonly before?: string | undefined;
}

/** Splits for their owners: inserting the row starts the payment. */
export class RoyaltySplits {
  readonly #token: SplitToken;
  readonly #gas: GasBudget;

  constructor(token: SplitToken, gas: GasBudget) {
    this.#token = token;
    this.#gas = gas;
  }

  /**
   * Stores a split and its payouts. Idempotent for the same request or booking. @throws NotFoundError
   *   without such a wallet, TooManyRequestsError, UnprocessableError if the request id was used for
   *   another split, UnavailableError without a token or gas.
   */
  async create(by: Requester, wanted: NewSplit): Promise<QueuedSplit> {
    const { bookingId, userId } = wanted;
    const requestKey = by.idempotencyId;
    return this.#transaction(by, async (db) => {
      // Splits for one booking also run one after another.
      await lockSplitsOf(db, userId);
      if (bookingId !== undefined) {
        const settled = await db.RoyaltySplit.findOne({ where: { userId, bookingId } });
        if (settled) return settled;
      }
      const first = await db.RoyaltySplit.findOne({ where: { userId, requestKey } });
      if (!first) return this.#add(db, by, wanted);
      // Splits are stored for longer than idempotent answers.
      if (await isAnother(db, first, wanted)) {
        throw new UnprocessableError(
          'Idempotency-Key was used with another request: use a new key',
        );
      }
      return first;
    });
  }

  async #add(
    db: TenantTransaction,
    { actor, idempotencyId: requestKey, requestId }: Requester,
    wanted: NewSplit,
  ): Promise<QueuedSplit> {
    const { agentId, bookingId, fromAddress, name, recipients, totalAmount, userId } = wanted;
    const { address: tokenAddress, chainId } = this.#token;
    if (tokenAddress === undefined)
      throw new UnavailableError('Splits are not available: USDC_ADDRESS is not set');
    if ((await storedWalletOf(db, { userId, agentId })) !== fromAddress) {
      throw new NotFoundError('Wallet not found');
    }
    await refuseTooMany(db, userId);
    const made = await db.RoyaltySplit.create({
      userId,
      agentId,
      requestKey,
      bookingId,
      fromAddress,
      name,
      chainId: String(chainId),
      tokenAddress,
      totalAmount: String(totalAmount),
    });
    const { id } = made;
    const amounts = allocateByShares(
      totalAmount,
      recipients.map(({ share }) => share),
    );
    await db.RoyaltyPayout.bulkCreate(
      recipients.map(({ address, share }, position) => {
        const amount = amounts[position] ?? 0n;
        const status = amount === 0n ? 'skipped' : 'pending';
        return {
          splitId: id,
          position,
          userId,
          address,
          status,
          share: Number(share),
          amount: String(amount),
        };
      }),
    );
    await recordAudit(db, {
      actor,
      userId,
      requestId,
      action: 'split.create',
      subject: id,
      detail: {
        agentId,
        from: fromAddress,
        amount: String(totalAmount),
        ...(bookingId !== undefined && { bookingId }),
      },
    });
    const paid = amounts.flatMap((amount, position) => (amount > 0n ? [position] : []));
    await this.#reserveGas(db, made, paid);
    return made;
  }

  /**
   * Retries the failed payouts of a split.
   *
   * @throws NotFoundError also if it belongs to another tenant; ConflictError unless it has failed;
   *   TooManyRequestsError beyond `MAX_OPEN_SPLITS`, or without gas for payouts that were never sent;
   *   GasSpentError.
   */
  async retry(by: Requester, id: string): Promise<QueuedSplit> {
    const { actor, requestId } = by;
    return this.#transaction(by, async (db) => {
      const [split] = await db.query<RoyaltySplitRow>(
        `${selectFrom(RoyaltySplit)} WHERE id = $id FOR UPDATE`,
        { id },
      );
      if (!split) throw new NotFoundError('Split not found');
      const { status, userId } = split;
      if (!RETRIED_STATUSES.some((retried) => retried === status)) {
        throw new ConflictError(
          `The split is ${status}: only partial or failed splits can be retried`,
          'SPLIT_NOT_FAILED',
          { status },
        );
      }
      await lockSplitsOf(db, userId);
      await refuseTooMany(db, userId);
      const attempt = split.attempt + 1;
      const unpaid = await db.RoyaltyPayout.findAll({
        where: { splitId: id, status: 'failed' },
        order: ['position'],
      });
      await db.RoyaltySplit.update(
        { status: 'queued', attempt, error: null, completedAt: null, dueAt: new Date() },
        { where: { id } },
      );
      await db.RoyaltyPayout.update(
        { status: 'pending', payment: null, transaction: null },
        { where: { splitId: id, status: 'failed' } },
      );
      await recordAudit(db, {
        actor,
        userId,
        requestId,
        action: 'split.retry',
        subject: id,
        detail: { attempt },
      });
      // A payout that was sent is paid in any case. Without a transaction its gas was released.
      if (unpaid.some(({ transaction }) => transaction === null)) {
        const positions = unpaid.map(({ position }) => position);
        await this.#reserveGas(db, { ...split, attempt }, positions);
      }
      return { id, status: 'queued' };
    });
  }

  /** Runs a transaction that reserves gas last. */
  #transaction<T>({ tenant }: Requester, work: (db: TenantTransaction) => Promise<T>): Promise<T> {
    return this.#gas.notifying(() => tenant.transaction(work));
  }

  /** Reserves the gas of payouts by position, if the operator pays for it. */
  async #reserveGas(
    db: TenantTransaction,
    split: Pick<RoyaltySplitRow, 'attempt' | 'chainId' | 'id' | 'userId'>,
    [first, ...others]: readonly number[],
  ): Promise<void> {
    if (first === undefined || !isPaidByOperator(split.chainId)) return;
    await this.#gas.reserve(db, {
      cause: splitCause(split, first),
      gas: gasFor(1 + others.length),
      userId: split.userId,
    });
  }
}

async function isAnother(
  db: TenantTransaction,
  made: RoyaltySplitRow,
  wanted: NewSplit,
): Promise<boolean> {
  const payouts = await db.RoyaltyPayout.findAll({
    where: { splitId: made.id },
    order: ['position'],
  });
  const recipients = wanted.recipients.map(({ address, share }) => `${address} ${share}`);
  return !isDeepStrictEqual(
    [made.agentId, made.bookingId, made.fromAddress, made.name, made.totalAmount].concat(
      payouts.map(({ address, share }) => `${address} ${share}`),
    ),
    [
      wanted.agentId,
      wanted.bookingId ?? null,
      wanted.fromAddress,
      wanted.name,
      String(wanted.totalAmount),
    ].concat(recipients),
  );
}

/** Serializes requests of a user, so that they cannot exceed the limit together. */
const lockSplitsOf = (db: TenantTransaction, userId: string): Promise<void> =>
  db.lock(`royalty-splits:${userId}`);

/** Rejects a split beyond the limit. @throws TooManyRequestsError */
async function refuseTooMany(db: TenantTransaction, userId: string): Promise<void> {
  const current = await db.RoyaltySplit.count({ where: { userId, status: OPEN_STATUSES } });
  if (current < MAX_OPEN_SPLITS) return;
  const facts = { current, limit: MAX_OPEN_SPLITS };
  throw new TooManyRequestsError(
    'Too many splits are in progress: retry later.',
    { max: MAX_OPEN_SPLITS, resetS: RETRY_AFTER_S },
    undefined,
    facts,
  );
}

/** Returns a split. @throws NotFoundError also if it belongs to another tenant. */
export async function getSplit(tenant: TenantDatabase, id: string): Promise<SplitWithPayouts> {
  const [found] = await withPayouts(
    tenant,
    await tenant.query<RoyaltySplitRow>(`${selectFrom(RoyaltySplit)} WHERE id = $id`, { id }),
  );
  if (!found) throw new NotFoundError('Split not found');
  return found;
}

/**
 * Lists a user's splits, newest first.
 *
 * @returns the page and its last id; undefined on the last page.
 */
export async function listSplits(
  tenant: TenantDatabase,
  { userId, settling, limit, before }: SplitsWanted,
): Promise<{
  readonly items: readonly SplitWithPayouts[];
  readonly next: readonly [string] | undefined;
}> {
  const rows = await tenant.query<RoyaltySplitRow>(
    `${selectFrom(RoyaltySplit)}
      WHERE user_id = $userId
        ${settling === undefined ? '' : `AND booking_id IS ${settling ? 'NOT NULL' : 'NULL'}`}
        ${before === undefined ? '' : 'AND id < $before'}
      ORDER BY id DESC LIMIT $most`,
    // One extra row shows if there is a next page.
    { userId, most: limit + 1, ...(before !== undefined && { before }) },
  );
  const page = rows.slice(0, limit);
  const last = rows.length > limit ? page.at(-1) : undefined;
  return { items: await withPayouts(tenant, page), next: last && [last.id] };
}

async function withPayouts(
  tenant: TenantDatabase,
  splits: readonly RoyaltySplitRow[],
): Promise<SplitWithPayouts[]> {
  if (splits.length === 0) return [];
  const payouts = await tenant.query<RoyaltyPayoutRow>(
    `${selectFrom(RoyaltyPayout)} WHERE split_id = ANY ($ids) ORDER BY split_id, position`,
    { ids: splits.map(({ id }) => id) },
  );
  const bySplit = new Map(
    splits.map((split) => [split.id, { split, payouts: [] as RoyaltyPayoutRow[] }]),
  );
  for (const payout of payouts) bySplit.get(payout.splitId)?.payouts.push(payout);
  return [...bySplit.values()];
}
