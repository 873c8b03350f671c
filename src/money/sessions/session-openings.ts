import type { Hex } from 'viem';
import type { ChainNode } from '../chain/chain-node.js';
import type { Database, Statements } from '../../platform/database/database.js';
import type { PaymentSessionRow } from '../../platform/database/models.js';
import { selectFrom } from '../../platform/database/schema/table.js';
import { paymentSessions } from '../../platform/database/tables/payment-sessions.js';
import { transfer } from '../ledger/ledger.js';
import type { ChainPayments } from '../payments/chain-payments.js';
import type { PaymentFailure } from '../../types/payment.js';
import { openingCause, sessionAccount } from './causes.js';
import { readHold, type EscrowHold } from './escrow.js';

/** A step must wait, for example for the end of a payment. */
export class SessionWaitsError extends Error {
  override readonly name = 'SessionWaitsError';
}

interface Parts {
  readonly database: Database;
  readonly payments: Pick<ChainPayments, 'stateOf'>;
  /** A node of the chain that holds deposits. */
  readonly node: Pick<ChainNode, 'chainId' | 'read'>;
}

/** Final steps of opening a session. Each step is idempotent and may run concurrently. */
export class SessionOpenings {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Stores the outcome of the requested hold: activates the session and books the deposit in the ledger.
   *
   * @returns false if the session was not opened.
   * @throws SessionWaitsError before the payment has ended; ChainAwayError.
   */
  async finish(id: string): Promise<boolean> {
    const { database, node, payments } = this.#parts;
    const [session, ended] = await Promise.all([
      findById(database, id),
      payments.stateOf(openingCause(id)),
    ]);
    if (session?.state !== 'opening') return session !== undefined && session.state !== 'failed';
    if (ended?.state !== 'confirmed' && ended?.state !== 'failed') {
      throw new SessionWaitsError('The hold is not confirmed yet: retry later');
    }
    // The configuration has changed since: an operator must resolve this.
    if (String(node.chainId) !== session.chainId) {
      throw new SessionWaitsError(
        `No node is configured for the chain ${session.chainId}: configure it and retry`,
      );
    }
    // The formats were checked when the row was inserted.
    const hold = await readHold(node, session.escrow as Hex, session.holdId as Hex);
    if (ended.state === 'failed' && !isHeld(session, hold)) {
      await failOpening(database, id, ended.failure ?? 'reverted');
      return false;
    }
    if (!hold) throw new SessionWaitsError('The node does not have the hold yet: retry later');
    await this.#activate(session, hold);
    return true;
  }

  /**
   * Activates a session; a concurrent activation books the deposit only once. A session whose hold is
   * over goes straight to settlement, without debits.
   */
  async #activate({ deposit, id }: PaymentSessionRow, hold: EscrowHold): Promise<void> {
    await this.#parts.database.asPlatform().statements((db) =>
      Promise.all([
        db.query(
          `UPDATE payment_sessions
              SET state = over.state, opened_at = now(), hold_expires_at = $expiresAt,
                  closing_at = CASE WHEN over.state = 'settling' THEN now() END
             FROM (SELECT CASE WHEN $closed OR $expiresAt <= now() THEN 'settling'
                               ELSE 'active' END AS state) AS over
            WHERE id = $id AND payment_sessions.state = 'opening'`,
          { id, expiresAt: hold.expiresAt, closed: hold.closed },
        ),
        transfer(db, {
          debit: 'external',
          credit: sessionAccount(id),
          amount: BigInt(deposit),
          currency: 'pathusd',
          cause: openingCause(id),
        }),
      ]),
    );
  }
}

/** Reports whether the escrow holds the deposit despite a failed payment, as after a database restore. */
const isHeld = ({ deposit }: PaymentSessionRow, hold: EscrowHold | undefined): boolean =>
  hold !== undefined && !hold.closed && hold.amount === BigInt(deposit);

/** Fails a session that was never opened, so that its wallet can open another. */
export async function failOpening(
  database: Database,
  id: string,
  failure: PaymentFailure,
): Promise<void> {
  await database.asPlatform().query(
    `UPDATE payment_sessions SET state = 'failed', failure = $failure
      WHERE id = $id AND state = 'opening'`,
    { id, failure },
  );
}

/** Finds a session by its row id, for internal use. */
export async function findById(
  database: Database,
  id: string,
): Promise<PaymentSessionRow | undefined> {
  const [found] = await database
    .asPlatform()
    .query<PaymentSessionRow>(`${selectFrom(paymentSessions)} WHERE id = $id`, { id });
  return found;
}

/** Finds a session and locks its row until the transaction ends. */
export async function lockSession(
  db: Statements,
  id: string,
): Promise<PaymentSessionRow | undefined> {
  const [found] = await db.query<PaymentSessionRow>(
    `${selectFrom(paymentSessions)} WHERE id = $id FOR NO KEY UPDATE`,
    { id },
  );
  return found;
}
