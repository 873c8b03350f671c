import type { AccountSettings } from './settings.js';

/** Who may be an admin. */
export type AdminRules = Pick<AccountSettings, 'adminEmails'>;

/** Of the built-in user that owns what programs create for nobody in particular. */
const OPERATOR_EMAIL = 'operator@platform.invalid';

/**
 * The one place that decides who is an admin: whom the database says, where ADMIN_EMAILS is set of those
 * that it names. An address alone makes nobody an admin, because anybody can register under it.
 */
export function isAdmin(user: { email: string; isAdmin: boolean }, rules: AdminRules): boolean {
  const { adminEmails } = rules;
  const mayBe =
    adminEmails.length === 0 || [OPERATOR_EMAIL, ...adminEmails].includes(user.email.toLowerCase());
  return user.isAdmin && mayBe;
}

/** Whether an address is an admin's, of whom a trusted caller says that it is theirs. */
export const isAdminEmail = (email: string, { adminEmails }: AdminRules): boolean =>
  adminEmails.includes(email.toLowerCase());
