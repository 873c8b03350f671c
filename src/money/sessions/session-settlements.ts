import { encodeFunctionData, type Hex } from 'viem';
import type { ChainNode, ChainFor } from '../chain/chain-node.js';
import { escrowAbi } from '../chain/payment-escrow.js';
import type { Database, Statements } from '../../platform/database/database.js';
import type { PaymentSessionRow } from '../../platform/database/models.js';
import { selectFrom } from '../../platform/database/schema/table.js';
import { paymentSessions } from '../../platform/database/tables/payment-sessions.js';
import { UnavailableError } from '../../lib/errors.js';
import { transfer, type Account } from '../ledger/ledger.js';
import { NO_AGENT, requestNotification } from '../../notifications/outbox.js';
import type { ChainPayments } from '../payments/chain-payments.js';
import {
  refundCause,
  sessionAccount,
  settlementCause,
  spentAccount,
  unpaidCause,
} from './causes.js';
import { ESCROW_GAS, readHold, type EscrowHold } from './escrow.js';
import { findById } from './session-openings.js';
import type { PaymentSessionSettings } from './settings.js';
import { isEnded } from '../../types/payment.js';
import type { PaymentSessionState, SettlementKind } from '../../types/payment-session-states.js';

/** Failed payments for one kind of settlement of a session after which operators are notified. */
export const NOTIFY_AFTER_ATTEMPTS = 5;

/** Seconds to back off after the first failure; four times as long after each further one, up to an hour. */
const RETRY_S = 60;
const RETRY_FACTOR = 4;
const MOST_RETRY_S = 3_600;

/** Seconds between two checks of a closing session for debits in flight. */
const DEBITS_S = 0.5;

export type SettlementStep =
  /** Store the outcome of the payment of this cause once it has ended. */
  | { readonly next: 'payment'; readonly cause: string }
  /** Wait until no holds for debits are open; the session accepts no new debits. */
  | { readonly next: 'debits' }
  | { readonly next: 'nothing'; readonly state: PaymentSessionState | undefined };

interface Parts {
  readonly database: Database;
  readonly payments: Pick<ChainPayments, 'request' | 'stateOf'>;
  /** A node of the chain that holds deposits. */
  readonly node: Pick<ChainNode, 'chainId'> & ChainFor<'read' | 'blockNumber'>;
  /** Blocks, including a transaction's own, after which it is final. */
  readonly confirmations: number;
  /** Address whose call settles; undefined if none is configured. */
  readonly operator: Hex | undefined;
  readonly settings: PaymentSessionSettings;
}

interface Settlement {
  readonly cumulative: string;
  readonly kind: SettlementKind;
  readonly attempts: number;
  readonly payment: string;
}

interface Failures {
  readonly attempts: number;
  /** True if it is too early for the next attempt. */
  readonly isPaused: boolean;
}

/**
 * Settles payment sessions on chain, step by step. Each step is idempotent and may run concurrently:
 * changes of a session lock its row.
 */
export class SessionSettlements {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Stores the outcome of a payment that has ended, and requests the payment that is due.
   *
   * @throws ChainAwayError if an earlier payment failed; UnavailableError without a signer.
   */
  async step(id: string): Promise<void> {
    let step: SettlementStep;
    do step = await this.request(id);
    while (step.next === 'payment' && (await this.settle(id, step.cause)));
  }

  /**
   * Requests the payment that is due, if any: a settlement of an active session, or the final settlement
   * of a session that is being closed.
   *
   * @throws ChainAwayError if an earlier payment failed; UnavailableError without a signer.
   */
  async request(id: string): Promise<SettlementStep> {
    const [session, { attempts }] = await Promise.all([
      findById(this.#parts.database, id),
      failuresOf(this.#platform, { id }),
    ]);
    if (!session || !isOnChain(session)) return { next: 'nothing', state: session?.state };
    // A failed payment may be due to a third party's change of the hold.
    const onChain = attempts > 0 ? await this.#takeFromChain(session) : 0n;
    return this.#locked(id, (db, locked) => this.#next(db, locked, onChain));
  }

  /** Stores the outcome of a payment; returns false before the payment has ended. */
  async settle(id: string, cause: string): Promise<boolean> {
    const ended = await this.#parts.payments.stateOf(cause);
    if (!isEnded(ended)) return false;
    await this.#locked(id, async (db, session) => {
      const [settlement] = await db.query<Settlement & { requestedAt: Date }>(
        `UPDATE payment_settlements SET state = $state, transaction = $hash, ended_at = now(),
                retry_at = CASE WHEN $state = 'failed' THEN now() END
          WHERE payment = $cause AND session_id = $id AND state = 'requested'
          RETURNING cumulative, kind, attempts, payment, requested_at AS "requestedAt"`,
        { id, cause, state: ended.state, hash: ended.hash ?? null },
      );
      if (!settlement) return; // already stored
      if (ended.state === 'failed') await this.#putOff(db, session, settlement);
      else await this.#confirm(db, session, settlement, settlement.requestedAt);
    });
    return true;
  }

  get #platform(): Statements {
    return this.#parts.database.asPlatform();
  }

  /**
   * Returns the next step.
   *
   * @param onChain the amount that the treasury has received on chain, at least.
   */
  async #next(
    db: Statements,
    session: PaymentSessionRow,
    onChain: bigint,
  ): Promise<SettlementStep> {
    const { delivered, id, settled, state } = session;
    if (!isOnChain(session)) return { next: 'nothing', state };
    const kind = state === 'active' ? 'settle' : 'close';
    // The escrow rejects less than it has paid already, as after a database restore.
    const cumulative = onChain > BigInt(delivered) ? String(onChain) : delivered;
    // Sent together; not every result is needed.
    const [[inFlight], isDueNow, { isPaused }, isHeld, attempts] = await Promise.all([
      db.query<Pick<Settlement, 'payment'>>(
        `SELECT payment FROM payment_settlements WHERE session_id = $id AND state = 'requested'`,
        { id },
      ),
      isDue(db, id),
      failuresOf(db, session, kind),
      hasOpenHolds(db, id),
      attemptsAt(db, id, cumulative, kind),
    ]);
    if (inFlight) return { next: 'payment', cause: inFlight.payment };
    const nothing = { next: 'nothing', state } as const;
    if (kind === 'settle') {
      if (!isDueNow) return nothing;
      if (delivered === settled) {
        await setDue(db, id, null);
        return nothing;
      }
    }
    if (isPaused) {
      await this.#pause(db, session, kind);
      return nothing;
    }
    if (kind === 'close' && isHeld) {
      await db.query(
        'UPDATE payment_sessions SET due_at = now() + make_interval(secs => $seconds) WHERE id = $id',
        { id, seconds: DEBITS_S },
      );
      return { next: 'debits' };
    }
    const cause = await this.#pay(db, session, { cumulative, kind, attempts: attempts + 1 });
    return { next: 'payment', cause };
  }

  async #pay(
    db: Statements,
    { chainId, escrow, holdId, id }: PaymentSessionRow,
    { attempts, cumulative, kind }: Omit<Settlement, 'payment'>,
  ): Promise<string> {
    const { operator, payments } = this.#parts;
    if (operator === undefined)
      throw new UnavailableError('No operator is configured to settle: configure a signer');
    const first = settlementCause(id, cumulative);
    const cause = [first, ...(kind === 'close' ? [kind] : []), ...(attempts > 1 ? [attempts] : [])];
    const payment = cause.join(':');
    const data = encodeFunctionData({
      abi: escrowAbi,
      functionName: kind,
      args: [holdId as Hex, BigInt(cumulative)],
    });
    await Promise.all([
      db.query(
        `INSERT INTO payment_settlements (session_id, cumulative, kind, attempts, payment)
         VALUES ($id, $cumulative, $kind, $attempts, $payment)
         ON CONFLICT (session_id, cumulative, kind) DO UPDATE
           SET state = 'requested', attempts = $attempts, payment = $payment, transaction = NULL,
               retry_at = NULL, requested_at = now(), ended_at = NULL`,
        { id, cumulative, kind, attempts, payment },
      ),
      payments.request(db, {
        cause: payment,
        chainId: Number(chainId),
        signer: operator,
        gas: ESCROW_GAS,
        calls: [{ to: escrow as Hex, data, value: 0n }], // checked when written
      }),
    ]);
    return payment;
  }

  async #confirm(
    db: Statements,
    session: PaymentSessionRow,
    { cumulative, kind }: Settlement,
    requestedAt: Date,
  ): Promise<void> {
    const settled = settledOf(session, BigInt(cumulative));
    if (kind === 'close') {
      await close(db, session, settled);
      return;
    }
    await book(db, session, settled);
    const { settleIntervalMs, settleThreshold } = this.#parts.settings;
    // Amounts delivered since the request count as if delivered at its time.
    const unsettled = BigInt(session.delivered) - settled;
    const after = new Date(requestedAt.getTime() + settleIntervalMs);
    const due = unsettled >= settleThreshold ? requestedAt : after;
    await setDue(db, session.id, unsettled > 0n ? due : null);
  }

  /**
   * Schedules a retry. Amounts delivered since form another sum, but wait for the same time. The payment
   * service has already notified operators of the payment.
   */
  async #putOff(
    db: Statements,
    session: PaymentSessionRow,
    { kind, payment }: Settlement,
  ): Promise<void> {
    const { attempts } = await failuresOf(db, session, kind);
    const seconds = Math.min(RETRY_S * RETRY_FACTOR ** (attempts - 1), MOST_RETRY_S);
    await db.query(
      `UPDATE payment_settlements SET retry_at = now() + make_interval(secs => $seconds)
        WHERE payment = $payment`,
      { payment, seconds },
    );
    await this.#pause(db, session, kind);
    if (attempts !== NOTIFY_AFTER_ATTEMPTS) return;
    const { id: sessionId } = session;
    await requestNotification(db, {
      id: `settlement-given-up-${sessionId}-${kind}-${session.settled}`,
      agent: NO_AGENT,
      event: 'settlement_given_up',
      sessionId,
      attempts,
    });
  }

  /** Postpones the session's due time until its next retry. */
  async #pause(db: Statements, { id }: PaymentSessionRow, kind: SettlementKind): Promise<void> {
    const column = kind === 'settle' ? 'settlement_due_at' : 'due_at';
    await db.query(
      `UPDATE payment_sessions SET ${column} =
              (SELECT max(retry_at) FROM payment_settlements
                WHERE session_id = $id AND kind = $kind AND state = 'failed')
        WHERE id = $id`,
      { id, kind },
    );
  }

  /**
   * Books the final on-chain state of the hold, and closes the session if the hold is closed.
   *
   * @returns the amount that the treasury has received. @throws ChainAwayError
   */
  async #takeFromChain(session: PaymentSessionRow): Promise<bigint> {
    const { confirmations, node } = this.#parts;
    // The configuration has changed since: an operator must resolve this.
    if (String(node.chainId) !== session.chainId) return 0n;
    const queries = node.onBehalfOf({ owner: session.address, isUrgent: true });
    const block = confirmations > 1 ? (await queries.blockNumber()) - confirmations + 1 : undefined;
    const ids = [session.escrow as Hex, session.holdId as Hex] as const; // checked when written
    const hold = await readHold(queries, ...ids, block);
    if (!hold) return 0n;
    await this.#locked(session.id, (db, locked) => syncFromChain(db, locked, hold));
    return hold.settled;
  }

  /** Runs work with the session's row locked against other changes and debits. */
  #locked<T>(
    id: string,
    work: (db: Statements, session: PaymentSessionRow) => Promise<T>,
  ): Promise<T> {
    return this.#parts.database.asPlatform().statements(async (db) => {
      const [session] = await db.query<PaymentSessionRow>(
        `${selectFrom(paymentSessions)} WHERE id = $id FOR NO KEY UPDATE`,
        { id },
      );
      if (!session) throw new RangeError(`Payment session ${id} not found`);
      return work(db, session);
    });
  }
}

/** Reports whether the session has a hold to settle. */
const isOnChain = ({ state }: Pick<PaymentSessionRow, 'state'>): boolean =>
  state === 'active' || state === 'settling';

async function syncFromChain(
  db: Statements,
  session: PaymentSessionRow,
  hold: EscrowHold,
): Promise<void> {
  const { id, state } = session;
  if (!isOnChain(session)) return;
  const [inFlight] = await db.query(
    `SELECT FROM payment_settlements WHERE session_id = $id AND state = 'requested'`,
    { id },
  );
  if (inFlight) return; // its own outcome settles the session
  const settled = settledOf(session, hold.settled);
  if (hold.closed && state === 'active') await beginClosing(db, id);
  if (hold.closed && !(await hasOpenHolds(db, id))) await close(db, session, settled);
  else await book(db, session, settled);
}

/** Returns the total that the treasury has received, given the total on chain. */
function settledOf({ delivered, settled }: PaymentSessionRow, onChain: bigint): bigint {
  // An excess over the delivered amount is left for the ledger check to report.
  const cumulative = onChain < BigInt(delivered) ? onChain : BigInt(delivered);
  return cumulative > BigInt(settled) ? cumulative : BigInt(settled);
}

/** Books the newly settled amount to the treasury, once. */
async function book(
  db: Statements,
  { id, settled: before }: PaymentSessionRow,
  settled: bigint,
): Promise<void> {
  const amount = settled - BigInt(before);
  if (amount === 0n) return;
  const cause = settlementCause(id, String(settled));
  await Promise.all([
    move(db, { debit: spentAccount(id), credit: 'treasury', amount, cause }),
    db.query('UPDATE payment_sessions SET settled = $settled WHERE id = $id', {
      id,
      settled: String(settled),
    }),
  ]);
}

/**
 * Closes a session whose hold has expired: the wallet keeps the part that the treasury did not receive. The
 * treasury's entry comes last, so that accounts are locked in the order of their names.
 */
async function close(db: Statements, session: PaymentSessionRow, settled: bigint): Promise<void> {
  const { delivered, deposit, id } = session;
  const unpaid = BigInt(delivered) - settled;
  // The statements are sent in this order.
  await Promise.all([
    move(db, {
      debit: sessionAccount(id),
      credit: 'external',
      amount: BigInt(deposit) - BigInt(delivered),
      cause: refundCause(id),
    }),
    move(db, {
      debit: spentAccount(id),
      credit: 'external',
      amount: unpaid,
      cause: unpaidCause(id),
    }),
    book(db, session, settled),
    db.query(
      `UPDATE payment_sessions SET state = 'closed', closed_at = now(), settlement_due_at = NULL
        WHERE id = $id`,
      { id },
    ),
  ]);
  if (unpaid === 0n) return;
  await requestNotification(db, {
    id: `session-unpaid-${id}`,
    agent: NO_AGENT,
    event: 'session_unpaid',
    sessionId: id,
    amount: String(unpaid),
  });
}

async function move(
  db: Statements,
  movement: {
    readonly debit: Account;
    readonly credit: Account;
    readonly amount: bigint;
    readonly cause: string;
  },
): Promise<void> {
  if (movement.amount > 0n) await transfer(db, { ...movement, currency: 'pathusd' });
}

/**
 * Stops debits of a session and makes its closing due.
 *
 * @returns false if the session was not active, or is being closed already.
 */
export async function beginClosing(db: Statements, id: string): Promise<boolean> {
  const begun = await db.query(
    `UPDATE payment_sessions SET state = 'settling', closing_at = now(), due_at = now()
      WHERE id = $id AND state = 'active' RETURNING 1`,
    { id },
  );
  return begun.length > 0;
}

/**
 * Stops debits of all sessions that a user opened for wallets kept here, and of those of further wallets, and makes
 * their closing due. A session that is being opened closes once its hold is on chain.
 *
 * @param wallets addresses in lower case.
 */
export async function closeSessionsOf(
  db: Statements,
  userId: string,
  wallets: readonly Hex[] = [],
): Promise<void> {
  await db.query(
    `UPDATE payment_sessions
        SET state = CASE state WHEN 'active' THEN 'settling' ELSE state END,
            closing_at = coalesce(closing_at, now()), due_at = now()
      WHERE (user_id = $userId OR address = ANY ($wallets)) AND state IN ('opening', 'active')`,
    { userId, wallets },
  );
}

/** Lists hashes of the final transactions that settled some of the session, oldest first. */
export async function settledBy(db: Statements, id: string): Promise<string[]> {
  const rows = await db.query<{ transaction: string }>(
    `SELECT transaction FROM payment_settlements
      WHERE session_id = $id AND state = 'confirmed' AND transaction IS NOT NULL
      ORDER BY ended_at, cumulative`,
    { id },
  );
  return rows.map(({ transaction }) => transaction);
}

/**
 * Counts failed attempts; those of `settle` only until a later settlement covers their sum.
 *
 * @param kind both kinds by default.
 */
async function failuresOf(
  db: Statements,
  { id }: Pick<PaymentSessionRow, 'id'>,
  kind?: SettlementKind,
): Promise<Failures> {
  const [row] = await db.query<Failures>(
    `SELECT coalesce(sum(s.attempts), 0)::integer AS attempts,
            coalesce(max(s.retry_at) > now(), false) AS "isPaused"
       FROM payment_settlements s JOIN payment_sessions p ON p.id = s.session_id
      WHERE s.session_id = $id AND s.state = 'failed' AND s.kind = coalesce($kind, s.kind)
        AND (s.kind = 'close' OR s.cumulative > p.settled)`,
    { id, kind: kind ?? null },
  );
  return row ?? { attempts: 0, isPaused: false };
}

/** Returns the number of earlier attempts to settle the same sum. */
async function attemptsAt(
  db: Statements,
  id: string,
  cumulative: string,
  kind: SettlementKind,
): Promise<number> {
  const [before] = await db.query<Pick<Settlement, 'attempts'>>(
    `SELECT attempts FROM payment_settlements
      WHERE session_id = $id AND cumulative = $cumulative::numeric AND kind = $kind`,
    { id, cumulative, kind },
  );
  return before?.attempts ?? 0;
}

async function hasOpenHolds(db: Statements, id: string): Promise<boolean> {
  const open = await db.query(
    `SELECT FROM ledger_holds
      WHERE debit = $account AND currency = 'pathusd' AND state = 'open' LIMIT 1`,
    { account: sessionAccount(id) },
  );
  return open.length > 0;
}

async function isDue(db: Statements, id: string): Promise<boolean> {
  const due = await db.query(
    'SELECT FROM payment_sessions WHERE id = $id AND settlement_due_at <= now()',
    { id },
  );
  return due.length > 0;
}

async function setDue(db: Statements, id: string, settlementDueAt: Date | null): Promise<void> {
  await db.query(
    'UPDATE payment_sessions SET settlement_due_at = $settlementDueAt WHERE id = $id',
    {
      id,
      settlementDueAt,
    },
  );
}
