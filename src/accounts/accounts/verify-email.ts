import { ofUser, recordAudit, type RequestOrigin } from '../../platform/audit/audit.js';
import { violates } from '../../platform/database/constraints.js';
import type { Database, TenantTransaction } from '../../platform/database/database.js';
import { consumeMailToken } from '../mail/mail-tokens.js';
import { requestMail } from '../mail/request-mail.js';
import { EMAIL_CHANGE } from './additions.js';
import { isMailbox } from './email.js';
import { releaseReferralCredits } from './referral-credits.js';
import { invalidToken } from './reset-password.js';
import { requireOpenSession } from './sessions.js';

interface Addresses {
  readonly email: string;
  readonly pendingEmail: string | null;
  readonly verified: boolean;
}

/** Returns an account's addresses and locks them until the transaction ends. */
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
 * Confirms an address by a mail token, and a session of the account: reading the mailbox is not enough.
 * @throws BadRequestError for a token that is invalid or another account's, or an address in use elsewhere;
 * UnauthorizedError when the session has ended.
 */
export async function verifyEmail(
  database: Database,
  { sessionId, userId }: { readonly userId: string; readonly sessionId: string },
  token: string,
  origin: RequestOrigin,
): Promise<string> {
  try {
    return await database.asPlatform().transaction(async (db) => {
      const proven = await consumeMailToken(db, 'verify-email', token);
      if (proven?.userId !== userId) throw invalidToken();
      const identityId = await requireOpenSession(db, { userId, sessionId });
      const addresses = await lockAddresses(db, userId);
      if (!addresses) throw invalidToken();
      if (proven.email === addresses.email) {
        await db.User.update({ emailVerifiedAt: new Date() }, { where: { id: userId } });
        await recordAudit(db, ofUser(userId, 'email.verify', origin));
      } else if (proven.email === addresses.pendingEmail) {
        await changeEmail(db, userId, addresses.email, proven.email);
        const detail = identityId === null ? {} : { identityId };
        await recordAudit(db, ofUser(userId, EMAIL_CHANGE, origin, { detail }));
      } else {
        throw invalidToken();
      }
      await releaseReferralCredits(db, userId);
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
  // The former mailbox may still hold a link for setting a password.
  await db.query('DELETE FROM mail_tokens WHERE user_id = $userId', { userId });
  if (isMailbox(former)) await requestMail(db, { kind: 'email-changed', address: former, userId });
}

/** Requests another mail with the link that confirms the account's current or pending address. */
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
