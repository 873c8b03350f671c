import type { UserRow } from '../../platform/database/models.js';
import type { AccountSettings } from './settings.js';

export type AdminRules = Pick<AccountSettings, 'adminEmails'>;

export interface AdminAttributes {
  readonly email: string;
  /** True if the user has proven ownership of the address. */
  readonly emailVerified: boolean;
  /** The stored flag. */
  readonly isAdmin: boolean;
}

/** Address of the built-in user that owns resources programs create for no particular user. */
const OPERATOR_EMAIL = 'operator@platform.invalid';

/**
 * Reports whether a user is an admin; the only place that decides this. A user is an admin by a verified
 * address in ADMIN_EMAILS or by the stored flag, which counts only for listed addresses once ADMIN_EMAILS
 * is set. An unverified address grants no rights: anybody can register it.
 */
export function isAdmin(
  { email, emailVerified, isAdmin: stored }: AdminAttributes,
  rules: AdminRules,
): boolean {
  if (isAdminEmail(email, rules)) return stored || emailVerified;
  return stored && (rules.adminEmails.length === 0 || email === OPERATOR_EMAIL);
}

export const isAdminUser = (
  { emailVerifiedAt, ...user }: Pick<UserRow, 'email' | 'emailVerifiedAt' | 'isAdmin'>,
  rules: AdminRules,
): boolean => isAdmin({ ...user, emailVerified: emailVerifiedAt instanceof Date }, rules);

/** Reports whether an address is an admin's. The caller must have verified its ownership. */
export const isAdminEmail = (email: string, { adminEmails }: AdminRules): boolean =>
  adminEmails.includes(email.toLowerCase());
