import { Op } from 'sequelize';
import { ofUser, recordAudit, type RequestOrigin } from '../../platform/audit/audit.js';
import type { Database, TenantTransaction } from '../../platform/database/database.js';
import { BadRequestError } from '../../lib/errors.js';
import { closeSessionsOf } from '../../money/sessions/session-settlements.js';
import { isBeingDeleted } from './account-deletions.js';
import { addressGiver } from './additions.js';
import { endApiKeys } from './api-keys.js';
import { networksOf } from '../../platform/http/client-networks.js';
import { isValidMailToken, consumeMailToken } from '../mail/mail-tokens.js';
import { requestMail } from '../mail/request-mail.js';
import { requireEmail } from './email.js';
import { checkPassword, hashPassword } from './password.js';
import { releaseReferralCredits } from './referral-credits.js';
import { isResetMailBlocked } from './reset-mail-blocks.js';

/**
 * Requests a mail with a link for setting a new password. Behaves the same for every address: the account is
 * looked up only when the mail is sent.
 * @throws BadRequestError for an invalid address.
 */
export async function forgotPassword(database: Database, email: string): Promise<void> {
  const address = requireEmail(email);
  await database
    .asPlatform()
    .transaction((db) => requestMail(db, { kind: 'reset-password', address }));
}

export const invalidToken = () => new BadRequestError('Invalid or expired token');

export interface PasswordReset {
  readonly token: string;
  readonly password: string;
  /** If true, the API keys of a verified account stay; otherwise all of them end. */
  readonly keepKeys?: boolean | undefined;
  readonly origin: RequestOrigin;
}

/** Requests the removal of a user's agents, in the transaction of the reset. */
export type RemoveAgents = (
  db: TenantTransaction,
  userId: string,
  by: { readonly actor: string; readonly requestId: string },
) => Promise<void>;

/**
 * Sets a password by a mail token, and ends all sessions and API keys. If the address was unverified, the
 * account may be an impostor's, so every means of access of an earlier holder is removed.
 * @throws BadRequestError for a bad password, which keeps the token, or a bad token; TooManyRequestsError
 */
export async function resetPassword(
  database: Database,
  { keepKeys, origin, password, token }: PasswordReset,
  removeAgents: RemoveAgents,
): Promise<void> {
  checkPassword(password);
  if (!(await isValidMailToken(database.asPlatform(), 'reset-password', token)))
    throw invalidToken();
  // Hashed before the transaction, so that no connection is held during CPU work.
  const passwordHash = await hashPassword(password, networksOf(origin.address).site);
  await database.asPlatform().transaction(async (db) => {
    const proven = await consumeMailToken(db, 'reset-password', token);
    if (!proven) throw invalidToken();
    const { email, userId } = proven;
    // The row lock ends, or prevents, a session that is being opened with the old password.
    const [user] = await db.query<{ verified: boolean }>(
      `SELECT email_verified_at IS NOT NULL AS verified FROM users
        WHERE id = $userId AND email = $email FOR UPDATE`,
      { userId, email },
    );
    if (!user || (await isBeingDeleted(db, userId))) throw invalidToken();
    if (await isResetMailBlocked(db, email)) throw invalidToken();
    checkPassword(password, email);
    if (!user.verified) {
      await removeForeignAccess(db, userId);
      await removeAgents(db, userId, { actor: userId, requestId: origin.requestId });
    }
    await db.query(
      `UPDATE users SET password_hash = $passwordHash, updated_at = now(), password_added_by = $addedBy,
              password_added_at = now(), suspended_password_hash = NULL,
              email_verified_at = coalesce(email_verified_at, now())
        WHERE id = $userId`,
      { userId, passwordHash, addedBy: await addressGiver(db, userId) },
    );
    await releaseReferralCredits(db, userId);
    await db.Session.destroy({ where: { userId } });
    if (keepKeys !== true || !user.verified) await endApiKeys(db, userId);
    await db.query('DELETE FROM mail_tokens WHERE user_id = $userId', { userId });
    await recordAudit(db, ofUser(userId, 'password.reset', origin));
    await requestMail(db, { kind: 'password-was-reset', address: email, userId });
  });
}

/**
 * Removes sign-ins and keys of AI providers that an earlier holder may have planted, wallets whose keys others have,
 * and streams of the radio, and closes payment sessions, whose ids that holder knows.
 */
async function removeForeignAccess(db: TenantTransaction, userId: string): Promise<void> {
  await db.Identity.destroy({ where: { userId } });
  await db.SignInHost.destroy({ where: { userId } });
  await db.ProviderKey.destroy({ where: { userId } });
  await db.Wallet.destroy({ where: { userId, [Op.or]: [{ brought: true }, { sealedKey: null }] } });
  await closeSessionsOf(db, userId);
  // Their sources' passwords are known; the worker ends the sources.
  await db.query('DELETE FROM radio_streams WHERE user_id = $userId', { userId });
  await db.User.update({ pendingEmail: null }, { where: { id: userId } });
}
