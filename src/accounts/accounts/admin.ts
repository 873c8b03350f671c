import type { UserRow } from '../../platform/database/models.js';
import type { AccountSettings } from './settings.js';

/** Who may be an admin. */
export type AdminRules = Pick<AccountSettings, 'adminEmails'>;

/** What of a user decides whether they are an admin. */
export interface Judged {
  readonly email: string;
  /** Whether they have proven that the address is theirs. */
  readonly emailVerified: boolean;
  /** As stored. */
  readonly isAdmin: boolean;
}

/** Of the built-in user that owns what programs create for nobody in particular. */
const OPERATOR_EMAIL = 'operator@platform.invalid';

/**
 * The one place that decides who is an admin: by a verified address that ADMIN_EMAILS names, or as the
 * database says; the latter, where ADMIN_EMAILS is set, of those that it names. An address that is not
 * verified makes nobody an admin, because anybody can register under it.
 */
export function isAdmin(
  { email, emailVerified, isAdmin: stored }: Judged,
  rules: AdminRules,
): boolean {
  if (isAdminEmail(email, rules)) return stored || emailVerified;
  return stored && (rules.adminEmails.length === 0 || email === OPERATOR_EMAIL);
}

/** The same of a stored user. */
export const isAdminUser = (
  { emailVerifiedAt, ...user }: Pick<UserRow, 'email' | 'emailVerifiedAt' | 'isAdmin'>,
  rules: AdminRules,
): boolean => isAdmin({ ...user, emailVerified: emailVerifiedAt instanceof Date }, rules);

/** Whether an address is an admin's, of whom a trusted caller says that it is theirs. */
export const isAdminEmail = (email: string, { adminEmails }: AdminRules): boolean =>
  adminEmails.includes(email.toLowerCase());
