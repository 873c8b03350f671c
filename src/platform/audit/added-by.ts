import { UnauthorizedError } from '../../lib/errors.js';
import type { Statements } from '../database/database.js';

/** The session or the API key that adds something to an account. */
export type AddingCredential = { readonly sessionId: string } | { readonly keyId: string };

/**
 * Returns the identity that a credential derives from: a session's own, or that of the session which made
 * the API key. Null for a session by a password that no identity has set.
 */
export async function identityOf(
  db: Statements,
  credential: AddingCredential | undefined,
): Promise<string | null> {
  if (credential === undefined) return null;
  const [found] =
    'sessionId' in credential
      ? await db.query<{ identity: string | null }>(
          'SELECT identity_id AS identity FROM sessions WHERE id = $sessionId',
          credential,
        )
      : await db.query<{ identity: string | null }>(
          'SELECT added_by AS identity FROM api_keys WHERE id = $keyId',
          credential,
        );
  return found?.identity ?? null;
}

/**
 * Checks that a credential is valid and locks its account until the transaction ends. Ending all credentials thus
 * either commits before and is seen here, or waits and sees this transaction's changes.
 * @throws UnauthorizedError when the credential has ended.
 */
export async function requireOpenCredential(
  db: Statements,
  userId: string,
  credential: AddingCredential,
): Promise<void> {
  await db.query('SELECT FROM users WHERE id = $userId FOR UPDATE', { userId });
  const open =
    'sessionId' in credential
      ? await db.query(
          'SELECT FROM sessions WHERE id = $sessionId AND user_id = $userId AND expires_at > now()',
          { ...credential, userId },
        )
      : await db.query(
          'SELECT FROM api_keys WHERE id = $keyId AND user_id = $userId AND suspended_at IS NULL',
          { ...credential, userId },
        );
  if (open.length === 0) throw new UnauthorizedError();
}
