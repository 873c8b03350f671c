import { UnauthorizedError } from '../../lib/errors.js';
import type { Statements } from '../database/database.js';

/** The session or the API key that adds something to an account. */
export type AddingCredential = { readonly sessionId: string } | { readonly keyId: string };

/** Returns the identity that opened a session; null for a session by a password that no identity has set. */
export async function identityOf(db: Statements, sessionId: string): Promise<string | null> {
  const [found] = await db.query<{ identity: string | null }>(
    'SELECT identity_id AS identity FROM sessions WHERE id = $sessionId',
    { sessionId },
  );
  return found?.identity ?? null;
}

/**
 * Checks that a credential is valid and locks its account until the transaction ends. Ending all credentials thus
 * either commits before and is seen here, or waits and sees this transaction's changes.
 * @returns the identity that opened the session, or the session that made the API key; null without an identity.
 * @throws UnauthorizedError when the credential has ended.
 */
export async function requireOpenCredential(
  db: Statements,
  userId: string,
  credential: AddingCredential,
): Promise<string | null> {
  await db.query('SELECT FROM users WHERE id = $userId FOR UPDATE', { userId });
  const [open] =
    'sessionId' in credential
      ? await db.query<{ identity: string | null }>(
          `SELECT identity_id AS identity FROM sessions
            WHERE id = $sessionId AND user_id = $userId AND expires_at > now()`,
          { ...credential, userId },
        )
      : await db.query<{ identity: string | null }>(
          `SELECT added_by AS identity FROM api_keys
            WHERE id = $keyId AND user_id = $userId AND suspended_at IS NULL`,
          { ...credential, userId },
        );
  if (!open) throw new UnauthorizedError();
  return open.identity;
}
