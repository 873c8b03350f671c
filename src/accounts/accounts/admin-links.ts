import { randomBytes } from 'node:crypto';
import { ofUser, recordAudit, type RequestOrigin } from '../../platform/audit/audit.js';
import type { Database } from '../../platform/database/database.js';
import { NotFoundError } from '../../lib/errors.js';
import { tokenHash } from '../../platform/secrets/token-hash.js';
import type { SignedInUser } from './sign-in.js';

export const ADMIN_LINK_MINUTES = 60;

const TOKEN_BYTES = 32;

export const ADMIN_LINK_PATH = '/api/auth/admin';

/** An address to be made an admin's, and the token that proves its ownership. */
export interface AdminLink {
  readonly email: string;
  readonly token: string;
}

/** Creates a link for each address that is no admin's, and invalidates earlier ones. Stores only hashes. */
export async function makeAdminLinks(
  database: Database,
  emails: readonly string[],
): Promise<AdminLink[]> {
  return database.asPlatform().transaction(async (db) => {
    const users = await db.User.findAll({
      attributes: ['email', 'emailVerifiedAt', 'isAdmin'] as const,
      where: { email: [...emails] },
    });
    const admins = users.filter((user) => user.isAdmin || user.emailVerifiedAt !== null);
    const proved = new Set(admins.map(({ email }) => email));
    const links = [...new Set(emails)]
      .filter((email) => !proved.has(email))
      .map((email) => ({ email, token: randomBytes(TOKEN_BYTES).toString('base64url') }));
    await db.query('DELETE FROM admin_links WHERE expires_at <= now()');
    for (const { email, token } of links) {
      await db.query(
        `INSERT INTO admin_links (email, token_hash, expires_at)
         VALUES ($email, $hash, now() + make_interval(mins => ${ADMIN_LINK_MINUTES}))
         ON CONFLICT (email) DO UPDATE
           SET token_hash = excluded.token_hash, expires_at = excluded.expires_at`,
        { email, hash: tokenHash(token) },
      );
    }
    return links;
  });
}

/**
 * Makes a signed-in user an admin by the link for their address, and uses the link up. Registering under the
 * address without the link is not enough, and the link works for no other address.
 * @throws NotFoundError for any other token.
 */
export async function useAdminLink(
  database: Database,
  user: SignedInUser,
  token: string,
  origin: RequestOrigin,
): Promise<void> {
  await database.asPlatform().transaction(async (db) => {
    const [answer] = await db.query<{ used: boolean | null }>(
      'SELECT use_admin_link($userId, $hash) AS used',
      { userId: user.id, hash: tokenHash(token) },
    );
    if (answer?.used !== true) {
      throw new NotFoundError('This link is invalid or belongs to another account');
    }
    await recordAudit(db, ofUser(user.id, 'account.become-admin', origin));
  });
}
