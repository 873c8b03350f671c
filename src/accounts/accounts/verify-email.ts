import { ofUser, recordAudit, type RequestOrigin } from '../../platform/audit/audit.js';
import { violates } from '../../platform/database/constraints.js';
import type { Database, TenantTransaction } from '../../platform/database/database.js';
import { takeMailToken } from '../mail/mail-tokens.js';
import { requestMail } from '../mail/request-mail.js';
import { isMailbox } from './email.js';
import { invalidToken } from './reset-password.js';

/** The addresses of an account. */
interface Addresses {
  readonly email: string;
  readonly pendingEmail: string | null;
  readonly verified: boolean;
}

/** Locked, so that nobody changes one of them meanwhile. */
export async function lockAddresses(
  db: TenantTransaction,
  userId: string,
): Promise<Addresses | undefined> {
  const [addresses] = await db.query<Addresses>(
    `SELECT email, pending_email AS "pendingEmail", email_verified_at IS NOT NULL AS verified
       FROM users WHERE id = $userId FOR UPDATE`,
    { userId },
  );
  return addresses;
}

/**
 * Confirms an address by the token of a mail, for a session of the account that the mail is about: who
 * merely reads the mailbox confirms nothing. One that was to become the account's is it from then on.
 *
 * @returns the account's address.
 * @throws BadRequestError for a token that is not good, or of another account, or when another account has
 *   got the address meanwhile.
 */
export async function verifyEmail(
  database: Database,
  userId: string,
  token: string,
  origin: RequestOrigin,
): Promise<string> {
  try {
    return await database.asPlatform().transaction(async (db) => {
      const proven = await takeMailToken(db, 'verify-email', token);
      const addresses = proven?.userId === userId && (await lockAddresses(db, userId));
      if (!proven || !addresses) throw invalidToken();
      if (proven.email === addresses.email) {
        await db.User.update({ emailVerifiedAt: new Date() }, { where: { id: userId } });
        await recordAudit(db, ofUser(userId, 'email.verify', origin));
      } else if (proven.email === addresses.pendingEmail) {
        await changeEmail(db, userId, addresses.email, proven.email);
        await recordAudit(db, ofUser(userId, 'email.change', origin));
      } else {
        throw invalidToken();
      }
      return proven.email;
    });
  } catch (error) {
    if (violates(error, 'users_email_key')) throw invalidToken();
    throw error;
  }
}

async function changeEmail(
  db: TenantTransaction,
  userId: string,
  former: string,
  email: string,
): Promise<void> {
  const changed = { email, emailVerifiedAt: new Date(), pendingEmail: null };
  await db.User.update(changed, { where: { id: userId } });
  // A link to a new password may lie in the former mailbox.
  await db.query('DELETE FROM mail_tokens WHERE user_id = $userId', { userId });
  if (isMailbox(former)) await requestMail(db, { kind: 'email-changed', address: former, userId });
}

/** Has the link mailed once more by which the account's address, or its next one, is confirmed. */
export async function resendVerification(database: Database, userId: string): Promise<void> {
  await database.asPlatform().transaction(async (db) => {
    const addresses = await lockAddresses(db, userId);
    if (!addresses) return;
    const { email, pendingEmail, verified } = addresses;
    if (pendingEmail !== null) {
      await requestMail(db, { kind: 'change-email', address: pendingEmail, userId });
    } else if (!verified && isMailbox(email)) {
      await requestMail(db, { kind: 'verify-email', address: email, userId });
    }
  });
}
