import type { Database, FunctionCall } from '../database/database.js';
import { withoutNul } from '../database/named-values.js';
import type { PaymentSessionRow } from '../database/models.js';
import { selectFrom } from '../database/table.js';
import { PaymentSession } from '../database/tables/payment-sessions.js';
import { tokenHash } from '../secrets/token-hash.js';
import { isSessionToken } from './session-token.js';

/** Finds a session by its id, in whatever state it is. Whoever has the id may see it. */
export async function findPaymentSession(
  database: Database,
  { token }: { readonly token: string },
): Promise<PaymentSessionRow | undefined> {
  if (!isSessionToken(token)) return undefined;
  const [found] = await database
    .asPlatform()
    .query<PaymentSessionRow>(`${selectFrom(PaymentSession)} WHERE token_hash = $hash`, {
      hash: tokenHash(token),
    });
  return found;
}

/** What is known of a session that pays. */
export type PayingSession = Pick<PaymentSessionRow, 'id'>;

const FIND_PAYING: FunctionCall = {
  name: 'find_paying_session',
  text: 'SELECT id FROM find_paying_session($1, $2)',
};

/**
 * The same for whoever debits it, who also says whose wallet it is of, in any case of its letters. Of
 * one that was never opened nothing is told.
 */
export async function findPayingSession(
  database: Database,
  { address, token }: { readonly token: string; readonly address: string },
): Promise<PayingSession | undefined> {
  if (!isSessionToken(token)) return undefined;
  const of = [tokenHash(token), withoutNul(address.toLowerCase())];
  const [found] = await database.call<PayingSession>(FIND_PAYING, of);
  return found;
}
