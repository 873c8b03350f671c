import type { Database } from '../database/database.js';
import { isAdmin, type AdminRules } from './admin.js';
import { normalizeEmail } from './email.js';
import { NOBODYS_HASH, passwordMatches } from './password.js';

/** A user as answers and handlers know them. */
export interface SignedInUser {
  readonly id: string;
  readonly name: string;
  readonly email: string;
  readonly isAdmin: boolean;
}

const FIND = { name: 'find_account', text: 'SELECT * FROM find_account($1)' };

interface Account {
  readonly id: string;
  readonly name: string;
  readonly email: string;
  readonly is_admin: boolean;
  readonly password_hash: string | null;
}

/**
 * The user with this email and password, or none. An unknown email takes as long as a wrong
 * password, so that answers do not tell who has an account.
 */
export async function verifyPassword(
  database: Database,
  email: string,
  password: string,
  rules: AdminRules,
): Promise<SignedInUser | undefined> {
  const [account] = await database.call<Account>(FIND, [normalizeEmail(email)]);
  const matches = await passwordMatches(password, account?.password_hash ?? NOBODYS_HASH);
  if (!account?.password_hash || !matches) return undefined;
  const user = { id: account.id, name: account.name, email: account.email };
  return { ...user, isAdmin: isAdmin({ ...user, isAdmin: account.is_admin }, rules) };
}
