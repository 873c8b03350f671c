import { encodeFunctionData, erc20Abi, type Hex } from 'viem';
import type { ChainNode, ChainFor } from '../chain/chain-node.js';
import { violates } from '../../platform/database/constraints.js';
import type { Database, Statements, TenantTransaction } from '../../platform/database/database.js';
import type { RoyaltyPayoutRow, RoyaltySplitRow } from '../../platform/database/models.js';
import { selectFrom } from '../../platform/database/schema/table.js';
import { RoyaltyPayout, RoyaltySplit } from '../../platform/database/tables/splits.js';
import { releaseGas } from '../gas/settle-gas.js';
import { transfer } from '../ledger/ledger.js';
import type { ChainPayments } from '../payments/chain-payments.js';
import { callsAtOnce } from '../payments/chains.js';
import { isEnded, type PaymentFailure } from '../../types/payment.js';
import { splitStatusOf, type PayoutStatus, type SplitStatus } from '../../types/split-states.js';
import { gasFor, splitCause } from './split-gas.js';

const NOT_ENOUGH = 'The balance of the wallet is too low';

const FAILURES: Readonly<Record<PaymentFailure, string>> = {
  reverted: 'The payment was reverted on chain',
  refused: 'The payment would have been reverted on chain',
  unsignable: 'The wallet cannot sign',
  cancelled: 'No node accepted the payment',
  unknown: 'The payment may have been made: check the wallet before a retry',
};

/** A step must wait, for example for another split of the same wallet. */
export class SplitWaitsError extends Error {
  override readonly name = 'SplitWaitsError';
}

interface Parts {
  readonly database: Database;
  readonly payments: Pick<ChainPayments, 'request' | 'stateOf'>;
  /** A node of the chain of the payouts. */
  readonly node: Pick<ChainNode, 'chainId'> & ChainFor<'tokenBalance'>;
}

/** Steps of a split's workflow. Each is idempotent and may run concurrently. */
export class SplitPayments {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Requests the payments of all pending payouts, or fails the payouts that the wallet cannot pay.
   *
   * @returns the causes of the payments to wait for, in order.
   * @throws SplitWaitsError while another split is paid from the wallet; ChainAwayError.
   */
  async request(id: string): Promise<readonly string[]> {
    const split = await this.#begin(id);
    if (!split) return [];
    const needed = sumOf(await this.#payouts(id, 'pending'));
    if (needed > 0n) {
      const balance = await this.#balance(split);
      await this.#locked(id, async (db) => {
        // A concurrent step may have requested the payments or failed the payouts.
        const pending = await payoutsOf(db, id, 'pending');
        const [first] = pending;
        if (balance >= needed) {
          await this.#requestAll(db, split, pending);
        } else if (first) {
          await fail(db, pending, { error: NOT_ENOUGH });
          await releaseGas(db, splitCause(split, first.position));
        }
      });
    }
    const inFlight = await this.#payouts(id, 'sent');
    return [...new Set(inFlight.flatMap(({ payment }) => payment ?? []))];
  }

  /**
   * Stores the outcome of a payment, and books its payouts in the ledger.
   *
   * @throws SplitWaitsError before it has ended.
   */
  async settle(id: string, cause: string): Promise<void> {
    const ended = await this.#parts.payments.stateOf(cause);
    if (!isEnded(ended)) {
      throw new SplitWaitsError(`The payment ${cause} has not ended: retry later`);
    }
    await this.#locked(id, async (db, split) => {
      const payouts = (await payoutsOf(db, id, 'sent')).filter(({ payment }) => payment === cause);
      const { failure = 'reverted', hash: transaction = null, state } = ended;
      if (state === 'failed') {
        await fail(db, payouts, { error: FAILURES[failure], transaction });
        return;
      }
      for (const payout of payouts) await book(db, split, payout);
      await setPayouts(db, payouts, { status: 'confirmed', transaction });
    });
  }

  /** Ends a split without pending payouts. @throws SplitWaitsError while some are pending or in flight. */
  async finish(id: string): Promise<SplitStatus | undefined> {
    return this.#locked(id, async (db) => {
      const payouts = await db.query<Pick<RoyaltyPayoutRow, 'status'>>(
        'SELECT status FROM royalty_payouts WHERE split_id = $id',
        { id },
      );
      const status = splitStatusOf(payouts.map((payout) => payout.status));
      if (status === 'processing')
        throw new SplitWaitsError('Not all payments have ended: retry later');
      const where = { id, status: 'processing' } as const;
      await db.RoyaltySplit.update({ status, completedAt: new Date() }, { where });
      return status;
    });
  }

  /**
   * Reserves the wallet for this split, so that no other split spends its balance.
   *
   * @returns undefined if the split has ended or was removed.
   */
  async #begin(id: string): Promise<RoyaltySplitRow | undefined> {
    try {
      return await this.#locked(id, async (db, split) => {
        if (split.status === 'queued') {
          await db.RoyaltySplit.update({ status: 'processing' }, { where: { id } });
        }
        return split.status === 'queued' || split.status === 'processing' ? split : undefined;
      });
    } catch (cause) {
      if (!violates(cause, 'royalty_splits_paying')) throw cause;
      throw new SplitWaitsError('Another split is being paid from the wallet: retry later', {
        cause,
      });
    }
  }

  async #balance({ chainId, fromAddress, tokenAddress, userId }: RoyaltySplitRow): Promise<bigint> {
    const { node } = this.#parts;
    // The configuration has changed since: an operator must resolve this while payouts are unpaid.
    if (String(node.chainId) !== chainId) {
      throw new SplitWaitsError(
        `No node is configured for the chain ${chainId}: configure it and retry`,
      );
    }
    const queries = node.onBehalfOf({ owner: userId, isUrgent: false });
    return queries.tokenBalance(tokenAddress as Hex, fromAddress as Hex); // checked when it was inserted
  }

  /** Requests payments with as many payouts in one transaction as the chain allows; all are paid or none. */
  async #requestAll(
    db: TenantTransaction,
    split: RoyaltySplitRow,
    pending: readonly RoyaltyPayoutRow[],
  ): Promise<void> {
    const chainId = Number(split.chainId);
    const atOnce = callsAtOnce(chainId);
    for (let first = 0; first < pending.length; first += atOnce) {
      const payouts = pending.slice(first, first + atOnce);
      const cause = splitCause(split, payouts[0]?.position ?? 0);
      await this.#parts.payments.request(db, {
        cause,
        chainId,
        signer: split.fromAddress as Hex,
        calls: payouts.map(({ address, amount }) => ({
          to: split.tokenAddress as Hex,
          data: transferData(address as Hex, BigInt(amount)),
          value: 0n,
        })),
        gas: gasFor(payouts.length),
      });
      await setPayouts(db, payouts, { status: 'sent', payment: cause });
    }
  }

  #payouts(id: string, status: PayoutStatus): Promise<RoyaltyPayoutRow[]> {
    return payoutsOf(this.#parts.database.asPlatform(), id, status);
  }

  /** Runs work with the split's row locked against other changes. */
  #locked<T>(
    id: string,
    work: (db: TenantTransaction, split: RoyaltySplitRow) => Promise<T>,
  ): Promise<T | undefined> {
    return this.#parts.database.asPlatform().transaction(async (db) => {
      const [split] = await db.query<RoyaltySplitRow>(
        `${selectFrom(RoyaltySplit)} WHERE id = $id FOR UPDATE`,
        { id },
      );
      return split && work(db, split);
    });
  }
}

const sumOf = (payouts: readonly RoyaltyPayoutRow[]): bigint =>
  payouts.reduce((sum, { amount }) => sum + BigInt(amount), 0n);

const payoutsOf = (
  db: Statements,
  splitId: string,
  status: PayoutStatus,
): Promise<RoyaltyPayoutRow[]> =>
  db.query<RoyaltyPayoutRow>(
    `${selectFrom(RoyaltyPayout)} WHERE split_id = $splitId AND status = $status ORDER BY position`,
    { splitId, status },
  );

async function setPayouts(
  db: TenantTransaction,
  payouts: readonly RoyaltyPayoutRow[],
  values: Partial<Pick<RoyaltyPayoutRow, 'status' | 'payment' | 'transaction'>>,
): Promise<void> {
  const [first] = payouts;
  if (!first) return;
  const { splitId } = first;
  const position = payouts.map((payout) => payout.position);
  await db.RoyaltyPayout.update(values, { where: { splitId, position } });
}

/** Fails payouts, and stores the reason in the split. */
async function fail(
  db: TenantTransaction,
  payouts: readonly RoyaltyPayoutRow[],
  { error, transaction = null }: { readonly error: string; readonly transaction?: string | null },
): Promise<void> {
  const [first] = payouts;
  if (!first) return;
  await setPayouts(db, payouts, { status: 'failed', transaction });
  await db.RoyaltySplit.update({ error }, { where: { id: first.splitId } });
}

/** Books a payout in the ledger, once. */
async function book(
  db: TenantTransaction,
  { chainId, fromAddress }: RoyaltySplitRow,
  { amount, position, splitId }: RoyaltyPayoutRow,
): Promise<void> {
  await transfer(db, {
    debit: `wallet:${fromAddress}`,
    credit: 'external',
    amount: BigInt(amount),
    currency: `usdc:${Number(chainId)}`,
    cause: `payout:${splitId}:${position}`,
  });
}

function transferData(to: Hex, amount: bigint): Hex {
  return encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [to, amount] });
}
