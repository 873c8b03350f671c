import type { Hex } from 'viem';
import type { ChainNode } from '../chain/chain-node.js';
import type { Database, Statements } from '../database/database.js';
import type { PaymentSessionRow } from '../database/models.js';
import { selectFrom } from '../database/table.js';
import { paymentSessions } from '../database/tables/payment-sessions.js';
import { transfer } from '../ledger/ledger.js';
import type { ChainPayments } from '../payments/chain-payments.js';
import type { PaymentFailure } from '../payments/payment.js';
import { openingCause, sessionAccount } from './causes.js';
import { readHold, type EscrowHold } from './escrow.js';

/** What a step needs is not there yet, such as the end of a payment. */
export class SessionWaitsError extends Error {
  override readonly name = 'SessionWaitsError';
}

interface Parts {
  readonly database: Database;
  readonly payments: Pick<ChainPayments, 'stateOf'>;
  /** A node of the chain that deposits are on. */
  readonly node: Pick<ChainNode, 'chainId' | 'view'>;
}

/** How the opening of a session ends. Each step may be repeated, and done by several at once. */
export class SessionOpenings {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Writes down what has become of the hold that was asked for: with it begins what can be debited, and
   * the deposit is in the ledger.
   *
   * @returns false for a session that was not opened.
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
      throw new SessionWaitsError('The hold is not confirmed');
    }
    // Configured otherwise since: an operator's to settle.
    if (String(node.chainId) !== session.chainId) {
      throw new SessionWaitsError(`Nothing is known here of the chain ${session.chainId}`);
    }
    // Checked when they were written.
    const hold = await readHold(node, session.escrow as Hex, session.holdId as Hex);
    if (ended.state === 'failed' && !isHeld(session, hold)) {
      await failOpening(database, id, ended.failure ?? 'reverted');
      return false;
    }
    if (!hold) throw new SessionWaitsError('The node does not know of the hold');
    await this.#activate(session, hold);
    return true;
  }

  /**
   * Where somebody else has opened it meanwhile nothing is moved: the deposit comes once. Of what is not held
   * any more nothing is debited.
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

/** Whether the escrow has it, though the payment was refused: that may be older than a database that was restored. */
const isHeld = ({ deposit }: PaymentSessionRow, hold: EscrowHold | undefined): boolean =>
  hold !== undefined && !hold.closed && hold.amount === BigInt(deposit);

/** Ends a session that was never opened: another one can be. */
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

/** The session of a row, for the platform's own work. */
export async function findById(
  database: Database,
  id: string,
): Promise<PaymentSessionRow | undefined> {
  const [found] = await database
    .asPlatform()
    .query<PaymentSessionRow>(`${selectFrom(paymentSessions)} WHERE id = $id`, { id });
  return found;
}

/** The same for whoever changes it: nobody else does until the transaction ends. */
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
