import type { Hex } from 'viem';
import { signTypedData } from 'viem/accounts';
import type { Database, Statements } from '../../platform/database/database.js';
import type { PaymentSessionRow } from '../../platform/database/models.js';
import type { ChainPayments } from '../payments/chain-payments.js';
import type { KeptKeys } from '../payments/signing-keys.js';
import { openingCause } from './causes.js';
import { openCall } from './escrow.js';
import { holdTypedData, type Hold } from './hold-authorization.js';
import { failOpening, findById } from './session-openings.js';

/** What of a session its hold is made of. */
export type HoldRow = Pick<
  PaymentSessionRow,
  'id' | 'address' | 'chainId' | 'escrow' | 'nonce' | 'deposit' | 'authorizationDeadline'
>;

/** Has what a wallet has signed held, in the transaction that writes the session. */
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

/** Whether the hold of a session is still to be signed here: nobody can ask for it but its run. */
export async function isSignedHere(database: Database, id: string): Promise<boolean> {
  const found = await database
    .asPlatform()
    .query(
      `SELECT FROM payment_sessions WHERE id = $id AND state = 'opening' AND user_id IS NOT NULL`,
      { id },
    );
  return found.length > 0;
}

interface Parts {
  readonly database: Database;
  readonly payments: Pick<ChainPayments, 'request' | 'stateOf'>;
  /** Whose call opens holds; undefined where nobody's does. */
  readonly operator: Hex | undefined;
  readonly kept: KeptKeys;
}

/** What wallets sign that are kept here, where their keys may be opened. */
export class SessionHolds {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Has the hold of a session asked for: one whose wallet did not sign by itself is signed for, which
   * was settled when the row was written.
   *
   * @returns the cause of the payment; undefined when nothing is to be waited for.
   */
  async request(id: string): Promise<string | undefined> {
    const { database, kept, operator, payments } = this.#parts;
    const session = await findById(database, id);
    if (session?.state !== 'opening') return undefined;
    const cause = openingCause(id);
    if (await payments.stateOf(cause)) return cause;
    const privateKey = await kept(session.address as Hex); // checked when written
    if (privateKey === undefined || operator === undefined) {
      await failOpening(database, id, 'unsignable');
      return undefined;
    }
    const { chainId, escrow } = session;
    const domain = { chainId: Number(chainId), escrow: escrow as Hex };
    const typedData = holdTypedData(domain, holdOf(session));
    const signature = await signTypedData({ ...typedData, privateKey });
    await database
      .asPlatform()
      .transaction((db) => requestHold(db, payments, operator, session, signature));
    return cause;
  }
}

/** Their forms were checked when the row was written. */
const holdOf = ({ address, authorizationDeadline, deposit, nonce }: HoldRow): Hold => ({
  payer: address as Hex,
  amount: BigInt(deposit),
  nonce: nonce as Hex,
  deadline: BigInt(authorizationDeadline.getTime()) / 1_000n,
});
