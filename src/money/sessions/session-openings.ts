import type { Hex } from 'viem';
import { signTypedData } from 'viem/accounts';
import type { ChainNode, ChainFor } from '../chain/chain-node.js';
import type { Database, Statements } from '../../platform/database/database.js';
import type { PaymentSessionRow } from '../../platform/database/models.js';
import { selectFrom } from '../../platform/database/schema/table.js';
import { paymentSessions } from '../../platform/database/tables/payment-sessions.js';
import { releaseGas } from '../gas/settle-gas.js';
import { transfer } from '../ledger/ledger.js';
import type { ChainPayments } from '../payments/chain-payments.js';
import type { KeptKeys } from '../payments/signing-keys.js';
import { isEnded, type PaymentFailure } from '../../types/payment.js';
import { openingCause, sessionAccount, sessionOf } from './causes.js';
import { openCall, readHold, type EscrowHold } from './escrow.js';
import { holdTypedData, type Hold } from './hold-authorization.js';

/** The node does not have the hold of a confirmed payment yet. */
export class HoldNotSeenError extends Error {
  override readonly name = 'HoldNotSeenError';

  constructor() {
    super('The node does not have the hold yet: retry later');
  }
}

export type HoldRow = Pick<
  PaymentSessionRow,
  'id' | 'address' | 'chainId' | 'escrow' | 'nonce' | 'deposit' | 'authorizationDeadline'
>;

/** Requests the payment that opens a signed hold, in the transaction that inserts the session. */
export async function requestHold(
  db: Statements,
  payments: Pick<ChainPayments, 'request'>,
  operator: Hex,
  session: HoldRow,
  signature: Hex,
): Promise<void> {
  await payments.request(db, {
    cause: openingCause(session.id),
    chainId: Number(session.chainId),
    signer: operator,
    ...openCall(session.escrow as Hex, { ...holdOf(session), signature }), // checked when written
  });
}

interface Parts {
  readonly database: Database;
  readonly payments: Pick<ChainPayments, 'request' | 'stateOf'>;
  /** A node of the chain that holds deposits. */
  readonly node: Pick<ChainNode, 'chainId'> & ChainFor<'read'>;
  /** Address whose call opens holds; undefined if none is configured. */
  readonly operator: Hex | undefined;
  readonly kept: KeptKeys;
}

/** Opens sessions in the process that may decrypt wallets' keys. Each step is idempotent. */
export class SessionOpenings {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Requests the hold of a session that the platform signs, or stores the outcome of a hold that has ended:
   * activates the session and books the deposit in the ledger.
   *
   * @throws HoldNotSeenError; ChainAwayError.
   */
  async step(id: string): Promise<void> {
    const { database, node, payments } = this.#parts;
    const [session, payment] = await Promise.all([
      findById(database, id),
      payments.stateOf(openingCause(id)),
    ]);
    if (session?.state !== 'opening') return;
    if (!payment) return this.#request(session);
    if (!isEnded(payment)) return;
    // The configuration has changed since: the check of the ledger reports it.
    if (String(node.chainId) !== session.chainId) return;
    const queries = node.onBehalfOf({ owner: session.address, isUrgent: true });
    // The formats were checked when the row was inserted.
    const hold = await readHold(queries, session.escrow as Hex, session.holdId as Hex);
    if (payment.state === 'failed' && !isHeld(session, hold)) {
      await failOpening(database, id, payment.failure ?? 'reverted');
      return;
    }
    if (!hold) throw new HoldNotSeenError();
    await this.#activate(session, hold);
  }

  /** Signs and requests a hold; the right to do so was checked when the row was inserted. */
  async #request(session: PaymentSessionRow): Promise<void> {
    const { database, kept, operator, payments } = this.#parts;
    const privateKey = await kept(session.address as Hex); // checked when written
    if (privateKey === undefined || operator === undefined) {
      await failOpening(database, session.id, 'unsignable');
      return;
    }
    const domain = { chainId: Number(session.chainId), escrow: session.escrow as Hex };
    const typedData = holdTypedData(domain, holdOf(session));
    const signature = await signTypedData({ ...typedData, privateKey });
    await database
      .asPlatform()
      .transaction((db) => requestHold(db, payments, operator, session, signature));
  }

  /**
   * Activates a session; a concurrent activation books the deposit only once. A session whose hold has
   * expired, or which was closed before it was open, is settled immediately, without debits.
   */
  async #activate({ deposit, id }: PaymentSessionRow, hold: EscrowHold): Promise<void> {
    await this.#parts.database.asPlatform().statements((db) =>
      Promise.all([
        db.query(
          `UPDATE payment_sessions
              SET opened_at = now(), hold_expires_at = $expiresAt,
                  state = CASE WHEN closing_at IS NOT NULL OR $closed OR $expiresAt <= now()
                               THEN 'settling' ELSE 'active' END,
                  closing_at = CASE WHEN $closed OR $expiresAt <= now()
                                    THEN coalesce(closing_at, now()) ELSE closing_at END
            WHERE id = $id AND state = 'opening'`,
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

/** The formats were checked when the row was inserted. */
const holdOf = ({ address, authorizationDeadline, deposit, nonce }: HoldRow): Hold => ({
  payer: address as Hex,
  amount: BigInt(deposit),
  nonce: nonce as Hex,
  deadline: BigInt(authorizationDeadline.getTime()) / 1_000n,
});

/** Fails a session that was never opened, so that its wallet can open another. */
async function failOpening(database: Database, id: string, failure: PaymentFailure): Promise<void> {
  await database.asPlatform().statements((db) =>
    Promise.all([
      db.query(
        `UPDATE payment_sessions SET state = 'failed', failure = $failure, closing_at = NULL
          WHERE id = $id AND state = 'opening'`,
        { id, failure },
      ),
      // A payment that was requested has settled its gas.
      releaseGas(db, openingCause(id)),
    ]),
  );
}

/** Hands a session over to its next step, in the transaction that ends its payment. */
export async function wakeSession(db: Statements, cause: string): Promise<void> {
  const id = sessionOf(cause);
  if (id === undefined) return;
  await db.query(
    `WITH due AS (UPDATE payment_sessions SET due_at = now() WHERE id = $id RETURNING 1)
     SELECT pg_notify('rows', 'payment_sessions') FROM due`,
    { id },
  );
}

export async function findById(
  database: Database,
  id: string,
): Promise<PaymentSessionRow | undefined> {
  const [found] = await database
    .asPlatform()
    .query<PaymentSessionRow>(`${selectFrom(paymentSessions)} WHERE id = $id`, { id });
  return found;
}
