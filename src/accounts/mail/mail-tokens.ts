import { randomBytes } from 'node:crypto';
import type { Statements, TenantTransaction } from '../../platform/database/database.js';
import { tokenHash } from '../../platform/secrets/token-hash.js';
import type { MailTokenKind } from '../../types/mail-kinds.js';

const TOKEN_BYTES = 32;
/** A token as it is made: anything else is not worth a query. */
const TOKEN_FORM = /^[\w-]{43}$/;

/** Hours for which a link is good. */
export const LINK_HOURS: Readonly<Record<MailTokenKind, number>> = {
  'verify-email': 24,
  'reset-password': 1,
};

/** Whose account a token is for, and the mailbox that it was sent to. */
export interface MailTokenOwner {
  readonly userId: string;
  readonly email: string;
}

/**
 * Makes the token of a link: 256 random bits in base64url, of which the hash is stored. It ends the one
 * before it of the same account and kind.
 */
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

/** Whether a token is good now: before work is done that it may be worth. */
export async function isGoodMailToken(
  db: Statements,
  kind: MailTokenKind,
  token: string,
): Promise<boolean> {
  if (!TOKEN_FORM.test(token)) return false;
  const sql = `SELECT FROM mail_tokens WHERE ${GOOD}`;
  return (await db.query(sql, { hash: tokenHash(token), kind })).length > 0;
}

/**
 * Uses a token up, if the transaction holds: of many at once that do, one gets it. Its account is locked.
 *
 * @returns undefined for a token that is unknown, used, expired or of another kind.
 */
export async function takeMailToken(
  db: TenantTransaction,
  kind: MailTokenKind,
  token: string,
): Promise<MailTokenOwner | undefined> {
  if (!TOKEN_FORM.test(token)) return undefined;
  const values = { hash: tokenHash(token), kind };
  // First the account, then what is of it, as everybody does who changes both: no deadlock.
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
