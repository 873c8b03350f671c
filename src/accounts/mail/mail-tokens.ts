import { randomBytes } from 'node:crypto';
import type { Statements, TenantTransaction } from '../../platform/database/database.js';
import { tokenHash } from '../../platform/secrets/token-hash.js';
import type { MailTokenKind } from '../../types/mail-kinds.js';

const TOKEN_BYTES = 32;
/** The form of a token; other input needs no query. */
const TOKEN_FORM = /^[\w-]{43}$/;

export const LINK_HOURS: Readonly<Record<MailTokenKind, number>> = {
  'verify-email': 24,
  'reset-password': 1,
};

export interface MailTokenOwner {
  readonly userId: string;
  readonly email: string;
}

/** Makes a link's token, 256 random bits; only its hash is stored. Invalidates the account's previous one. */
export async function makeMailToken(
  db: TenantTransaction,
  kind: MailTokenKind,
  { email, userId }: MailTokenOwner,
): Promise<string> {
  const token = randomBytes(TOKEN_BYTES).toString('base64url');
  await db.query(
    `INSERT INTO mail_tokens (id, user_id, kind, email, expires_at)
     VALUES ($hash, $userId, $kind, $email, now() + make_interval(hours => $hours))
     ON CONFLICT (user_id, kind) DO UPDATE
       SET id = excluded.id, email = excluded.email, expires_at = excluded.expires_at`,
    { hash: tokenHash(token), userId, kind, email, hours: LINK_HOURS[kind] },
  );
  return token;
}

const GOOD = 'id = $hash AND kind = $kind AND expires_at > now()';

/** Reports whether a token is valid now, before expensive work is done for it. */
export async function isValidMailToken(
  db: Statements,
  kind: MailTokenKind,
  token: string,
): Promise<boolean> {
  if (!TOKEN_FORM.test(token)) return false;
  const sql = `SELECT FROM mail_tokens WHERE ${GOOD}`;
  return (await db.query(sql, { hash: tokenHash(token), kind })).length > 0;
}

/**
 * Consumes a token if the transaction commits; only one of several concurrent callers succeeds. Locks the
 * token's account.
 * @returns undefined if the token is unknown, used, expired or of another kind.
 */
export async function consumeMailToken(
  db: TenantTransaction,
  kind: MailTokenKind,
  token: string,
): Promise<MailTokenOwner | undefined> {
  if (!TOKEN_FORM.test(token)) return undefined;
  const values = { hash: tokenHash(token), kind };
  // Lock the account before its tokens, in the order used everywhere, to prevent deadlocks.
  await db.query(
    `SELECT FROM users WHERE id = (SELECT user_id FROM mail_tokens WHERE ${GOOD}) FOR UPDATE`,
    values,
  );
  const [owner] = await db.query<MailTokenOwner>(
    `DELETE FROM mail_tokens WHERE ${GOOD} RETURNING user_id AS "userId", email`,
    values,
  );
  return owner;
}
