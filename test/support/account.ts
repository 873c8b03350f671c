import { randomUUID } from 'node:crypto';
import { hashPassword } from '../../src/accounts/accounts/password.js';
import { addSession } from '../../src/accounts/accounts/sessions.js';
import type { Database } from '../../src/platform/database/database.js';
import { SESSION_COOKIE } from '../../api/auth/session-cookie.js';

/** Password of every test account. */
export const PASSWORD = 'a-password-of-tests';

/** Shared hash, as hashing is expensive on purpose. */
let hashed: Promise<string> | undefined;

/** A registered user. */
export interface TestAccount {
  readonly id: string;
  readonly email: string;
  readonly password: string;
  /** Hash of the password as stored. */
  readonly passwordHash: string;
}

/** Creates an account directly, for tests that are not about registration. */
export async function makeAccount(
  database: Database,
  { email = `${randomUUID()}@example.com`, isAdmin = false } = {},
): Promise<TestAccount> {
  const passwordHash = await (hashed ??= hashPassword(PASSWORD, 'tests'));
  const id = randomUUID();
  await database.asPlatform().transaction((db) =>
    db.User.create({
      id,
      email,
      name: email,
      isAdmin,
      passwordHash,
      referralCode: randomUUID().slice(0, 12).toUpperCase(),
    }),
  );
  return { id, email, password: PASSWORD, passwordHash };
}

/** Signs a user in from a new browser. @returns the cookie header for requests. */
export async function signIn(database: Database, { id }: { readonly id: string }): Promise<string> {
  const place = { address: '192.0.2.1', requestId: randomUUID(), userAgent: undefined };
  const { token } = await database
    .asPlatform()
    .transaction((db) => addSession(db, id, 'password', place));
  return `${SESSION_COOKIE}=${token}`;
}
