import type { Hex } from 'viem';
import type {
  Database,
  Statements,
  TransactionStatements,
} from '../../platform/database/database.js';
import { settleGas, type UsedGas } from '../gas/settle-gas.js';
import { transfer } from '../ledger/ledger.js';
import { NO_AGENT, requestNotification } from '../../notifications/outbox.js';
import type { PlatformEvent } from '../../types/notification.js';
import { feeCause, type Fee } from './fee.js';
import type {
  PaymentCall,
  PaymentFailure,
  StoredCall,
  TransactionPurpose,
} from '../../types/payment.js';
import type { SignedTransaction, UnsignedTransaction } from './sign.js';

/** A signer on a chain; its payments use consecutive nonces. */
export interface SignerRef {
  readonly chainId: number;
  /** In lower case. */
  readonly address: Hex;
}

/** Returns the name of a signer in workflows. */
export const signerId = ({ address, chainId }: SignerRef): string => `${chainId}-${address}`;

/** Returns the signer of a payment. @throws RangeError if the payment does not exist. */
export async function signerOf(database: Database, paymentId: string): Promise<string> {
  const [row] = await database
    .asPlatform()
    .query<SignerRef>(
      'SELECT chain_id AS "chainId", signer AS address FROM payments WHERE id = $paymentId',
      { paymentId },
    );
  if (!row) throw new RangeError(`Payment ${paymentId} not found`);
  return signerId(row);
}

export interface QueuedPayment {
  readonly id: string;
  readonly cause: string;
  readonly calls: readonly StoredCall[];
  readonly gas: string | null;
}

export interface StoredTransaction {
  readonly hash: Hex;
  readonly paymentId: string | null;
  readonly nonce: bigint;
  readonly purpose: TransactionPurpose;
  readonly raw: Hex;
  readonly maxFee: bigint;
  readonly priorityFee: bigint;
  readonly gas: bigint;
  readonly active: boolean;
  readonly refused: boolean;
  /** Milliseconds since a node last accepted it, or since it was signed. */
  readonly waitingMs: number;
}

/** The fields of a transaction needed when it has ended. */
export type SentTransaction = Pick<StoredTransaction, 'hash' | 'nonce' | 'paymentId' | 'purpose'>;

/** The final outcome of a transaction. */
export interface MinedForGood {
  /** The number of its block. */
  readonly block: number;
  /** Undefined if the transaction succeeded. */
  readonly failure: PaymentFailure | undefined;
  /** Undefined if the platform's own wallet paid no fee. */
  readonly fee: Fee | undefined;
  readonly gas: bigint;
}

interface TransactionRow extends Omit<
  StoredTransaction,
  'nonce' | 'maxFee' | 'priorityFee' | 'gas' | 'waitingMs'
> {
  readonly nonce: string;
  readonly maxFee: string;
  readonly priorityFee: string;
  readonly gas: string;
  readonly waitingMs: string;
}

const TRANSACTION = `
  SELECT hash, payment_id AS "paymentId", nonce, purpose, raw, max_fee AS "maxFee",
         priority_fee AS "priorityFee", gas, active, refused,
         extract(epoch FROM now() - coalesce(broadcast_at, signed_at)) * 1000 AS "waitingMs"
    FROM transactions`;

/** A signed transaction to store. */
interface NewTransaction {
  readonly paymentId: string | null;
  readonly purpose: TransactionPurpose;
  readonly unsigned: UnsignedTransaction;
  readonly signed: SignedTransaction;
}

interface SettledPayment extends UsedGas {
  readonly paymentId: string;
}

const COLUMNS = `hash, payment_id, chain_id, signer, nonce, purpose, raw, max_fee, priority_fee, gas`;
const VALUES = `$hash, $paymentId, $chainId::bigint, $address, $nonce::bigint, $purpose, $raw,
                $maxFee::bigint, $priorityFee::bigint, $gas::bigint`;

const OF_SIGNER = 'chain_id = $chainId::bigint AND signer = $address';

const UNSETTLED = `
  ${TRANSACTION} WHERE ${OF_SIGNER} AND nonce IN (
     SELECT nonce FROM transactions
      WHERE ${OF_SIGNER} AND active AND final_at IS NULL)
   ORDER BY nonce, signed_at`;

const NEXT_NONCE = `SELECT max(nonce) + 1 AS next FROM transactions WHERE ${OF_SIGNER}`;

/** Seconds for which a payment is not handed to its workflow again. */
const CLAIMED_S = 60;

const CLAIM = `
  WITH claimed AS (
    UPDATE payments SET due_at = now() + interval '${CLAIMED_S} seconds'
     WHERE ${OF_SIGNER} AND settled_at IS NULL
       AND due_at < now() + interval '${CLAIMED_S / 2} seconds'
  )
  SELECT count(*) AS open FROM payments WHERE ${OF_SIGNER} AND settled_at IS NULL`;

/** Work in the transaction that ends a payment: for its requester, who waits. */
export type OnEnded = (db: Statements, cause: string) => Promise<void>;

export class PaymentStore {
  readonly #database: Database;
  readonly #signer: SignerRef;
  readonly #onEnded: OnEnded | undefined;

  constructor(database: Database, signer: SignerRef, onEnded?: OnEnded) {
    this.#database = database;
    this.#signer = signer;
    this.#onEnded = onEnded;
  }

  /**
   * Returns the signer's work: the number of unsettled payments, the nonce after the last signed one, and
   * transactions that are not final. Renews the workflow's claim on the payments now and then.
   */
  readQueue(): Promise<{
    readonly open: number;
    readonly next: bigint;
    readonly onTheWay: ReadonlyMap<bigint, readonly StoredTransaction[]>;
  }> {
    return this.#database.asPlatform().statements(async (db) => {
      const [[row], signed] = await Promise.all([
        db.query<{ open: string }>(CLAIM, this.#values({})),
        this.#signed(db),
      ]);
      return { open: Number(row?.open), ...signed };
    });
  }

  /** Returns payments without a signed transaction in order of request, except the given ones. */
  queued(most: number, except: readonly string[]): Promise<QueuedPayment[]> {
    return this.#query(
      `SELECT id, cause, calls, gas FROM payments
        WHERE ${OF_SIGNER} AND state = 'queued' AND id <> ALL ($except)
        ORDER BY requested_at, id LIMIT $most`,
      { most, except },
    );
  }

  /** Returns the calls of a payment. @throws RangeError if it does not exist. */
  async callsOf(paymentId: string): Promise<PaymentCall[]> {
    const [row] = await this.#query<Pick<QueuedPayment, 'calls'>>(
      'SELECT calls FROM payments WHERE id = $paymentId',
      { paymentId },
    );
    if (!row) throw new RangeError(`Payment ${paymentId} not found`);
    return row.calls.map((call) => ({ ...call, value: BigInt(call.value) }));
  }

  /** Returns transactions that are not final, including replaced ones, by nonce. */
  async unsettled(): Promise<ReadonlyMap<bigint, readonly StoredTransaction[]>> {
    return byNonce(await this.#query<TransactionRow>(UNSETTLED));
  }

  /** Returns transactions that are not final, by nonce, and the nonce after the last signed one. */
  signed(): Promise<{
    readonly next: bigint;
    readonly onTheWay: ReadonlyMap<bigint, readonly StoredTransaction[]>;
  }> {
    return this.#database.asPlatform().statements((db) => this.#signed(db));
  }

  /** Returns the final transaction of a nonce; undefined if the platform did not sign it. */
  async finalOf(nonce: bigint): Promise<StoredTransaction | undefined> {
    const [row] = await this.#query<TransactionRow>(
      `${TRANSACTION} WHERE ${OF_SIGNER} AND nonce = $nonce::bigint AND final_at IS NOT NULL`,
      { nonce: String(nonce) },
    );
    return row && transactionOf(row);
  }

  /**
   * Stores the transaction of a payment with its nonce, before it is sent to a node.
   *
   * @returns false if another process was faster: discard the transaction.
   */
  storeFirst(
    paymentId: string,
    unsigned: UnsignedTransaction,
    signed: SignedTransaction,
  ): Promise<boolean> {
    return this.#locked(async (db) => {
      const stored = await db.query(
        `WITH given AS (
           UPDATE payments SET state = 'broadcast', nonce = $nonce::bigint, hash = $hash
            WHERE id = $paymentId AND state = 'queued' AND NOT EXISTS (
              SELECT FROM transactions WHERE ${OF_SIGNER} AND nonce >= $nonce::bigint)
            RETURNING id
         )
         INSERT INTO transactions (${COLUMNS}) SELECT ${VALUES} FROM given RETURNING 1`,
        this.#values(valuesOf({ paymentId, purpose: 'pay', unsigned, signed })),
      );
      return stored.length > 0;
    });
  }

  /**
   * Replaces a transaction by another with the same nonce; the old one is kept.
   *
   * @returns false if the old transaction was already replaced or is final.
   */
  replace(
    { hash, paymentId }: StoredTransaction,
    purpose: TransactionPurpose,
    unsigned: UnsignedTransaction,
    signed: SignedTransaction,
  ): Promise<boolean> {
    return this.#locked(async (db) => {
      const replaced = await db.query(
        `UPDATE transactions SET active = false
          WHERE hash = $hash AND active AND final_at IS NULL RETURNING 1`,
        { hash },
      );
      if (replaced.length === 0) return false;
      if (paymentId !== null) {
        await db.query('UPDATE payments SET hash = $hash WHERE id = $paymentId', {
          paymentId,
          hash: signed.hash,
        });
      }
      await this.#insert(db, { paymentId, purpose, unsigned, signed });
      return true;
    });
  }

  /** Records that the transaction was sent to a node. */
  async offered({ hash }: Pick<StoredTransaction, 'hash'>, taken: boolean): Promise<void> {
    await this.#query(
      `UPDATE transactions SET refused = NOT $taken,
              broadcast_at = CASE WHEN $taken THEN now() ELSE broadcast_at END
        WHERE hash = $hash AND (refused = $taken OR $taken)`,
      { hash, taken },
    );
  }

  /** Settles a transaction that is final: uses up its nonce, ends its payment and books its fee. */
  async settle(mined: SentTransaction, { block, failure, fee, gas }: MinedForGood): Promise<void> {
    const { hash, nonce, paymentId } = mined;
    await this.#locked(async (db) => {
      const values = this.#values({ nonce: String(nonce), hash, block: String(block) });
      const [, , , ended] = await Promise.all([
        // First, so that two transactions of a nonce are never active.
        db.query(
          `UPDATE transactions SET active = false
            WHERE ${OF_SIGNER} AND nonce = $nonce::bigint AND hash <> $hash`,
          values,
        ),
        db.query(
          `UPDATE transactions SET active = true, final_at = now(), block_number = $block,
                  fee = $fee, fee_payer = $payer, fee_block = $feeBlock
            WHERE hash = $hash AND final_at IS NULL`,
          {
            hash,
            block: String(block),
            fee: fee === undefined ? null : String(fee.amount),
            payer: fee?.payer ?? null,
            feeBlock: fee?.block ?? null,
          },
        ),
        // Fees of transactions that became final in an older version are booked now.
        fee &&
          transfer(db, {
            debit: 'fees',
            credit: 'external',
            amount: fee.amount,
            currency: 'pathusd',
            cause: feeCause(hash),
          }),
        db.query<{ cause: string }>(
          `UPDATE payments SET state = $state, failure = $failure, hash = $hash,
                  block_number = $block, settled_at = now()
            WHERE id = $paymentId AND settled_at IS NULL RETURNING cause`,
          {
            paymentId,
            hash,
            block: String(block),
            state: failure === undefined ? 'confirmed' : 'failed',
            failure: failure ?? null,
          },
        ),
      ]);
      const [settled] = ended;
      if (settled && paymentId !== null) {
        await this.#ended(db, { ...settled, paymentId, failure, gas });
      }
    });
  }

  /** Fails a payment for which no transaction was signed, or will be. */
  async giveUp(paymentId: string, failure: PaymentFailure): Promise<void> {
    await this.#database.asPlatform().statements(async (db) => {
      const [settled] = await db.query<{ cause: string }>(
        `UPDATE payments SET state = 'failed', failure = $failure, settled_at = now()
          WHERE id = $paymentId AND state = 'queued' RETURNING cause`,
        { paymentId, failure },
      );
      if (settled) await this.#ended(db, { ...settled, paymentId, failure, gas: undefined });
    });
  }

  /**
   * Fails all queued payments when the chain has used nonces that this database has no transaction for: a
   * lost transaction may have paid them. Payments requested later are not affected.
   *
   * @returns false if a transaction was signed for the nonce, or if this was recorded before.
   */
  async failUnknown(used: bigint): Promise<boolean> {
    return this.#locked(async (db) => {
      const failed = await db.query<{ id: string; cause: string }>(
        `UPDATE payments SET state = 'failed', failure = 'unknown', nonce = $last::bigint, settled_at = now()
          WHERE ${OF_SIGNER} AND state = 'queued'
            AND NOT EXISTS (SELECT FROM transactions WHERE ${OF_SIGNER} AND nonce >= $last::bigint)
            AND NOT EXISTS (SELECT FROM payments seen
                             WHERE seen.chain_id = $chainId::bigint AND seen.signer = $address
                               AND seen.failure = 'unknown' AND seen.nonce >= $last::bigint)
          RETURNING id, cause`,
        this.#values({ last: String(used - 1n) }),
      );
      for (const { cause, id: paymentId } of failed) {
        await this.#ended(db, { cause, paymentId, failure: 'unknown', gas: undefined });
      }
      return failed.length > 0;
    });
  }

  /** Notifies operators. @param id idempotency key: a repeated id notifies only once. */
  async notify(id: string, event: PlatformEvent): Promise<void> {
    await requestNotification(this.#database.asPlatform(), { id, agent: NO_AGENT, ...event });
  }

  /** Counts a failed attempt to sign for a payment. @returns the number of attempts. */
  async attempted(paymentId: string): Promise<number> {
    const [row] = await this.#query<{ attempts: number }>(
      'UPDATE payments SET attempts = attempts + 1 WHERE id = $paymentId RETURNING attempts',
      { paymentId },
    );
    return row?.attempts ?? 0;
  }

  /** Stores a transaction without a payment that only fills a nonce gap. */
  async storeFill(unsigned: UnsignedTransaction, signed: SignedTransaction): Promise<void> {
    await this.#locked(async (db) => {
      const [taken] = await db.query(
        `SELECT FROM transactions WHERE ${OF_SIGNER} AND nonce = $nonce::bigint AND active`,
        this.#values({ nonce: String(unsigned.nonce) }),
      );
      if (!taken) await this.#insert(db, { paymentId: null, purpose: 'fill', unsigned, signed });
    });
  }

  /**
   * Requeues a payment whose nonce was used by a transaction that is not stored here.
   *
   * @param isAuthentic true if only the platform can have signed it: it may be the payment, lost from a
   *   restored database. The payment then fails as `unknown`.
   */
  async requeueUnknown(
    { nonce, paymentId }: StoredTransaction,
    isAuthentic: boolean,
  ): Promise<void> {
    await this.#locked(async (db) => {
      await db.query(
        `UPDATE transactions SET active = false WHERE ${OF_SIGNER} AND nonce = $nonce::bigint`,
        this.#values({ nonce: String(nonce) }),
      );
      if (isAuthentic && paymentId !== null) {
        const [failed] = await db.query<{ cause: string }>(
          `UPDATE payments SET state = 'failed', failure = 'unknown', settled_at = now()
            WHERE id = $paymentId AND state = 'broadcast' AND nonce = $nonce::bigint RETURNING cause`,
          { paymentId, nonce: String(nonce) },
        );
        if (failed) {
          await this.#ended(db, { ...failed, paymentId, failure: 'unknown', gas: undefined });
        }
        return;
      }
      await db.query(
        `UPDATE payments SET state = 'queued', nonce = NULL, hash = NULL
          WHERE id = $paymentId AND state = 'broadcast' AND nonce = $nonce::bigint`,
        { paymentId, nonce: String(nonce) },
      );
    });
  }

  /**
   * Settles a payment's gas, notifies operators of a failed payment, and the requester of every payment, in
   * the payment's last transaction.
   */
  async #ended(db: Statements, { cause, failure, gas, paymentId }: SettledPayment): Promise<void> {
    await settleGas(db, { cause, failure, gas });
    if (failure !== undefined) {
      await requestNotification(db, {
        id: `payment-failed-${paymentId}`,
        agent: NO_AGENT,
        event: 'payment_failed',
        cause,
        paymentId,
        failure,
      });
    }
    await this.#onEnded?.(db, cause);
  }

  async #signed(db: TransactionStatements) {
    // In this order: a transaction signed between the two would look like a gap.
    const [[row], rows] = await Promise.all([
      db.query<{ next: string | null }>(NEXT_NONCE, this.#values({})),
      db.query<TransactionRow>(UNSETTLED, this.#values({})),
    ]);
    return { next: BigInt(row?.next ?? 0), onTheWay: byNonce(rows) };
  }

  async #insert(db: Statements, row: NewTransaction): Promise<void> {
    await db.query(
      `INSERT INTO transactions (${COLUMNS}) VALUES (${VALUES})`,
      this.#values(valuesOf(row)),
    );
  }

  /** Serializes changes of a signer's nonces across all processes. */
  #locked<T>(work: (db: TransactionStatements) => Promise<T>): Promise<T> {
    const { address, chainId } = this.#signer;
    return this.#database.asPlatform().statements(async (db) => {
      const [, result] = await Promise.all([
        db.lock(`signer:${chainId}:${address}`),
        work(db), // its first statement runs after the lock is acquired
      ]);
      return result;
    });
  }

  #query<Row extends object>(sql: string, values: Record<string, unknown> = {}): Promise<Row[]> {
    return this.#database.asPlatform().query<Row>(sql, this.#values(values));
  }

  #values = (values: Record<string, unknown>) => ({ ...this.#signer, ...values });
}

const valuesOf = ({ paymentId, purpose, signed, unsigned }: NewTransaction) => ({
  ...signed,
  paymentId,
  purpose,
  nonce: String(unsigned.nonce),
  gas: String(unsigned.gas),
  maxFee: String(unsigned.maxFee),
  priorityFee: String(unsigned.priorityFee),
});

function byNonce(rows: readonly TransactionRow[]): Map<bigint, StoredTransaction[]> {
  const found = new Map<bigint, StoredTransaction[]>();
  for (const transaction of rows.map(transactionOf)) {
    const { nonce } = transaction;
    found.set(nonce, [...(found.get(nonce) ?? []), transaction]);
  }
  return found;
}

const transactionOf = (row: TransactionRow): StoredTransaction => ({
  ...row,
  nonce: BigInt(row.nonce),
  maxFee: BigInt(row.maxFee),
  priorityFee: BigInt(row.priorityFee),
  gas: BigInt(row.gas),
  waitingMs: Number(row.waitingMs),
});
