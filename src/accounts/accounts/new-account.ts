import { randomInt, randomUUID } from 'node:crypto';
import { Op } from 'sequelize';
import type { TenantTransaction } from '../../platform/database/database.js';
import type { UserRow } from '../../platform/database/models.js';
import { OPERATOR_USER_ID } from '../../types/operator-user.js';
import type { AccountSettings } from './settings.js';

/** Without characters that look alike. */
const REFERRAL_ALPHABET = 'ABCDEFGHJKMNPQRSTUVWXYZ23456789';
const REFERRAL_CODE_LENGTH = 12;

/** What is known of somebody new. */
export type NewAccount = Pick<UserRow, 'email' | 'name' | 'passwordHash'> &
  Partial<Pick<UserRow, 'emailVerifiedAt'>>;

/**
 * Makes the account of somebody new, however they come; the first may become the admin.
 *
 * @throws what violates `users_email_key` when the email has an account.
 */
export async function createAccount(
  db: TenantTransaction,
  account: NewAccount,
  { firstIsAdmin }: Pick<AccountSettings, 'firstIsAdmin'>,
): Promise<UserRow> {
  return db.User.create({
    ...account,
    id: randomUUID(),
    isAdmin: firstIsAdmin && (await isFirstAccount(db)),
    referralCode: newReferralCode(),
  });
}

/** Whether nobody has an account yet. */
export async function hasNoAccount(db: TenantTransaction): Promise<boolean> {
  return (await db.User.findOne({ where: { id: { [Op.ne]: OPERATOR_USER_ID } } })) === null;
}

/** Two first registrations at once: the second waits here, and then sees the first. */
async function isFirstAccount(db: TenantTransaction): Promise<boolean> {
  if (!(await hasNoAccount(db))) return false;
  await db.lock('first-account');
  return hasNoAccount(db);
}

function newReferralCode(): string {
  const letter = () => REFERRAL_ALPHABET.charAt(randomInt(REFERRAL_ALPHABET.length));
  return Array.from({ length: REFERRAL_CODE_LENGTH }, letter).join('');
}
