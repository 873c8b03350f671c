import { ofUser, recordAudit } from '../../platform/audit/audit.js';
import type { Database } from '../../platform/database/database.js';
import { BadRequestError, ForbiddenError } from '../../lib/errors.js';
import { networksOf } from '../../platform/http/client-networks.js';
import type { AdminRules } from './admin.js';
import { endApiKeys } from './api-keys.js';
import { identityOf } from '../../platform/audit/added-by.js';
import { requestNotice } from './account-notices.js';
import { checkPassword, hashPassword } from './password.js';
import { addSession, requireOpenSession, type NewSession, type SignInOrigin } from './sessions.js';
import { verifyPassword, type SignedInUser } from './sign-in.js';

export interface PasswordChange {
  readonly user: Pick<SignedInUser, 'id' | 'email'>;
  /** Omitted for an account without a password; that needs a fresh session. */
  readonly currentPassword?: string | undefined;
  readonly newPassword: string;
  /** If true, the API keys stay; otherwise all of them end. */
  readonly keepKeys?: boolean | undefined;
  /** The requesting session, which is the proof when the account has no password yet. */
  readonly sessionId: string;
  readonly place: SignInOrigin;
}

/**
 * Changes a password or sets an account's first, ends all sessions, even those being opened, and the API
 * keys, and opens a session.
 * @throws ForbiddenError for a wrong password, BadRequestError for an unacceptable or a missing one,
 * TooManyRequestsError at the sign-in limits, UnauthorizedError without password and session.
 */
export async function changePassword(
  database: Database,
  { user, currentPassword, keepKeys, newPassword, place, sessionId }: PasswordChange,
  rules: AdminRules,
): Promise<NewSession> {
  checkPassword(newPassword, user.email);
  const from = networksOf(place.address);
  let passwordHash: string | null = null;
  if (currentPassword !== undefined) {
    const shown = { email: user.email, password: currentPassword, from };
    const proof = await verifyPassword(database, shown, rules);
    if (proof?.user.id !== user.id) throw incorrect();
    ({ passwordHash } = proof);
  }
  const changed = await hashPassword(newPassword, from.site);
  return database.asPlatform().transaction(async (db) => {
    if (currentPassword === undefined) await requireOpenSession(db, { userId: user.id, sessionId });
    const count = await db.User.update(
      {
        passwordHash: changed,
        passwordAddedBy: await identityOf(db, sessionId),
        passwordAddedAt: new Date(),
        suspendedPasswordHash: null,
      },
      { where: { id: user.id, passwordHash } },
    );
    if (count === 0) throw passwordHash === null ? missing() : incorrect();
    await db.Session.destroy({ where: { userId: user.id } });
    if (keepKeys !== true) await endApiKeys(db, user.id);
    if (passwordHash === null) await requestNotice(db, user.id, 'sign-in-added');
    const { address, requestId } = place;
    await recordAudit(db, ofUser(user.id, 'password.change', { address, requestId }));
    return addSession(db, user.id, 'password', place);
  });
}

const missing = () => new BadRequestError('currentPassword is required');
const incorrect = () => new ForbiddenError('Current password is incorrect', 'PASSWORD_INCORRECT');
