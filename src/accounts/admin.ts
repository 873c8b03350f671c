/** Who counts as an admin, and how the first one comes to be. */
export interface AdminRules {
  readonly production: boolean;
  /** `ADMIN_EMAILS`, lower case. */
  readonly adminEmails: readonly string[];
}

/** The one place that decides who is an admin. */
export function isAdmin(
  user: { email: string; isAdmin: boolean },
  rules: Pick<AdminRules, 'adminEmails'>,
): boolean {
  return user.isAdmin || rules.adminEmails.includes(user.email.toLowerCase());
}

/** Whether the first account on an empty database becomes the admin (never in production). */
export function firstAccountIsAdmin(rules: AdminRules): boolean {
  return !rules.production && rules.adminEmails.length === 0;
}
