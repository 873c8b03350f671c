import { ofUser, recordAudit, type RequestOrigin } from '../../platform/audit/audit.js';
import { violates } from '../../platform/database/constraints.js';
import type { Database, TenantTransaction } from '../../platform/database/database.js';
import { BadRequestError, ConflictError } from '../../lib/errors.js';
import type { ClientNetworks } from '../../platform/http/client-networks.js';
import { requestMail } from '../mail/request-mail.js';
import type { MailSettings } from '../mail/settings.js';
import { isVisible, NOT_VISIBLE } from '../../lib/visible-text.js';
import { isAdminUser } from './admin.js';
import type { AccountSettings } from './settings.js';
import { createAccount, hasNoAccount } from './new-account.js';
import type { SignedInUser } from './sign-in.js';
import { requireChosenEmail } from './email.js';
import { checkPassword, hashPassword } from './password.js';
import { creditReferral } from './referral-credits.js';

export const MAX_NAME_LENGTH = 200;

export interface Registration {
  readonly email: string;
  readonly password: string;
  /** Defaults to the email. */
  readonly name?: string;
  /** Case-insensitive. */
  readonly referralCode?: string;
  readonly from: ClientNetworks;
  readonly origin: RequestOrigin;
}

/**
 * Creates an account and, with mail, requests the verification of its address; does not sign the user in.
 * @throws BadRequestError for an unusable email or password or an unknown referral code, ConflictError when
 * the email has an account, TooManyRequestsError when the hashing queue is full.
 */
export async function registerAccount(
  database: Database,
  registration: Registration,
  settings: Pick<AccountSettings, 'adminEmails' | 'creditsGrantedADay' | 'firstIsAdmin'>,
  mail?: Pick<MailSettings, 'available'>,
): Promise<SignedInUser> {
  // A password on a wallet's address would open the account without the wallet.
  const email = requireChosenEmail(registration.email);
  checkPassword(registration.password, email);
  const name = registration.name?.trim() || email;
  if (name.length > MAX_NAME_LENGTH)
    throw new BadRequestError('Name is too long: shorten it and retry');
  if (!isVisible(name)) throw new BadRequestError(`name ${NOT_VISIBLE}`);
  // Hashed before the transaction, so that no connection is held during CPU work.
  const passwordHash = await hashPassword(registration.password, registration.from.site);

  try {
    return await database.asPlatform().transaction(async (db) => {
      const referrerId = await findReferrer(db, registration.referralCode);
      const user = await createAccount(db, { email, name, passwordHash }, settings);
      if (referrerId !== undefined) {
        await creditReferral(db, { userId: user.id, referrerId }, settings);
      }
      if (mail?.available) {
        await requestMail(db, { kind: 'verify-email', address: email, userId: user.id });
      }
      await recordAudit(db, ofUser(user.id, 'account.register', registration.origin));
      return { id: user.id, email, name, isAdmin: isAdminUser(user, settings) };
    });
  } catch (error) {
    if (violates(error, 'users_email_key'))
      throw new ConflictError('Email already registered', 'EMAIL_TAKEN');
    throw error;
  }
}

async function findReferrer(
  db: TenantTransaction,
  code: string | undefined,
): Promise<string | undefined> {
  if (code === undefined) return undefined;
  const referrer = await db.User.findOne({
    attributes: ['id'],
    where: { referralCode: code.toUpperCase() },
  });
  if (!referrer) throw new BadRequestError('Unknown referral code');
  return referrer.id;
}

/** Reports whether the next user to register becomes the admin, because no account exists yet. */
export async function isFirstAdminPending(
  database: Database,
  { firstIsAdmin }: Pick<AccountSettings, 'firstIsAdmin'>,
): Promise<boolean> {
  return firstIsAdmin && (await database.asPlatform().transaction(hasNoAccount));
}
