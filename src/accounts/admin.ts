import type { AccountSettings } from './settings.js';

/** Who counts as an admin, beside those whom the database says. */
export type AdminRules = Pick<AccountSettings, 'adminEmails'>;

/** The one place that decides who is an admin. */
export function isAdmin(user: { email: string; isAdmin: boolean }, rules: AdminRules): boolean {
  return user.isAdmin || rules.adminEmails.includes(user.email.toLowerCase());
}
