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
