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

/** The fields of a session that form its hold. */
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

/** Reports whether the platform has yet to sign the session's hold: then only its workflow can request it. */
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
  /** Address whose call opens holds; undefined if none is configured. */
  readonly operator: Hex | undefined;
  readonly kept: KeptKeys;
}

/** Signs holds of wallets whose keys the platform stores, in the process that may decrypt them. */
export class SessionHolds {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Requests the hold of a session. Signs it if the wallet did not; the right to do so was checked when
   * the row was inserted.
   *
   * @returns the cause of the payment; undefined if there is no payment to wait for.
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

/** The formats were checked when the row was inserted. */
const holdOf = ({ address, authorizationDeadline, deposit, nonce }: HoldRow): Hold => ({
  payer: address as Hex,
  amount: BigInt(deposit),
  nonce: nonce as Hex,
  deadline: BigInt(authorizationDeadline.getTime()) / 1_000n,
});
