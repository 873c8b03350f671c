import { ofUser, recordAudit, type RequestOrigin } from '../../platform/audit/audit.js';
import type { Database, TenantTransaction } from '../../platform/database/database.js';
import { BadRequestError } from '../../lib/errors.js';
import { isBeingDeleted } from './account-deletions.js';
import { networksOf } from '../../platform/http/client-networks.js';
import { isGoodMailToken, takeMailToken } from '../mail/mail-tokens.js';
import { requestMail } from '../mail/request-mail.js';
import { requireEmail } from './email.js';
import { checkPassword, hashPassword } from './password.js';
import { resetMailIsStopped } from './reset-mail-stops.js';

/**
 * Has a link mailed by which a new password can be set. Whether the address has an account is found out
 * when the mail is sent, so this does the same for every address.
 *
 * @throws BadRequestError for what is no address.
 */
export async function forgotPassword(database: Database, email: string): Promise<void> {
  const address = requireEmail(email);
  await database
    .asPlatform()
    .transaction((db) => requestMail(db, { kind: 'reset-password', address }));
}

/** A token out of a mail that is not good, or not any more. */
export const invalidToken = () => new BadRequestError('Invalid or expired token');

/** A new password by a link. */
export interface PasswordReset {
  readonly token: string;
  readonly password: string;
  readonly origin: RequestOrigin;
}

/**
 * Sets a password by the token of a mail, and ends all sessions. The mailbox is proven by it: who had made
 * the account under an address that was not verified may have been anybody, and what they left goes.
 *
 * @throws BadRequestError for a password that cannot be one, which leaves the token, or a token that is
 *   not good; TooManyRequestsError when too many come at once.
 */
export async function resetPassword(
  database: Database,
  { origin, password, token }: PasswordReset,
): Promise<void> {
  checkPassword(password);
  if (!(await isGoodMailToken(database.asPlatform(), 'reset-password', token)))
    throw invalidToken();
  // Before the transaction: a connection is not held while the processor is busy.
  const passwordHash = await hashPassword(password, networksOf(origin.address).site);
  await database.asPlatform().transaction(async (db) => {
    const proven = await takeMailToken(db, 'reset-password', token);
    if (!proven) throw invalidToken();
    const { email, userId } = proven;
    // Locked: a session that is just being opened by the old password is ended, or does not open.
    const [user] = await db.query<{ verified: boolean }>(
      `SELECT email_verified_at IS NOT NULL AS verified FROM users
        WHERE id = $userId AND email = $email FOR UPDATE`,
      { userId, email },
    );
    if (!user || (await isBeingDeleted(db, userId))) throw invalidToken();
    if (await resetMailIsStopped(db, email)) throw invalidToken();
    checkPassword(password, email);
    if (!user.verified) await removePlanted(db, userId);
    await db.query(
      `UPDATE users SET password_hash = $passwordHash, updated_at = now(),
              email_verified_at = coalesce(email_verified_at, now())
        WHERE id = $userId`,
      { userId, passwordHash },
    );
    await db.Session.destroy({ where: { userId } });
    await db.query('DELETE FROM mail_tokens WHERE user_id = $userId', { userId });
    await recordAudit(db, ofUser(userId, 'password.reset', origin));
    await requestMail(db, { kind: 'password-was-reset', address: email, userId });
  });
}

/**
 * Takes away every way in, and back in, that an earlier holder of an account may have left, and keys of
 * wallets that they have as well: what was paid to those would be theirs.
 */
async function removePlanted(db: TenantTransaction, userId: string): Promise<void> {
  await db.ApiKey.destroy({ where: { userId } });
  await db.Identity.destroy({ where: { userId } });
  await db.SignInHost.destroy({ where: { userId } });
  await db.Wallet.destroy({ where: { userId, brought: true } });
  await db.User.update({ pendingEmail: null }, { where: { id: userId } });
}
