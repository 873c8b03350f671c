import type { Database } from '../database/database.js';
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

/**
 * The same for whoever debits it, who also says whose wallet it is of, in any case of its letters. Of
 * one that was never opened nothing is told.
 */
export async function findPayingSession(
  database: Database,
  { address, token }: { readonly token: string; readonly address: string },
): Promise<PaymentSessionRow | undefined> {
  const found = await findPaymentSession(database, { token });
  if (found?.address !== address.toLowerCase()) return undefined;
  return found.openedAt === null ? undefined : found;
}
