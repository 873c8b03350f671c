import { randomInt, randomUUID } from 'node:crypto';
import { Op } from 'sequelize';
import type { TenantTransaction } from '../../platform/database/database.js';
import type { UserRow } from '../../platform/database/models.js';
import { OPERATOR_USER_ID } from '../../types/operator-user.js';
import type { AccountSettings } from './settings.js';

/** Leaves out characters that look alike. */
const REFERRAL_ALPHABET = 'ABCDEFGHJKMNPQRSTUVWXYZ23456789';
const REFERRAL_CODE_LENGTH = 12;

export type NewAccount = Pick<UserRow, 'email' | 'name' | 'passwordHash'> &
  Partial<Pick<UserRow, 'emailVerifiedAt'>>;

/**
 * Creates a new account, for any way of registering; the first account may become the admin.
 * @throws the violation of `users_email_key` when the email already has an account.
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

/** Reports whether no account exists yet, apart from the built-in user. */
export async function hasNoAccount(db: TenantTransaction): Promise<boolean> {
  return (await db.User.findOne({ where: { id: { [Op.ne]: OPERATOR_USER_ID } } })) === null;
}

/** Reports whether the new account is the first; waits here for a concurrent first registration. */
async function isFirstAccount(db: TenantTransaction): Promise<boolean> {
  if (!(await hasNoAccount(db))) return false;
  await db.lock('first-account');
  return hasNoAccount(db);
}

function newReferralCode(): string {
  const letter = () => REFERRAL_ALPHABET.charAt(randomInt(REFERRAL_ALPHABET.length));
  return Array.from({ length: REFERRAL_CODE_LENGTH }, letter).join('');
}
