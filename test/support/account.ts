import { randomUUID } from 'node:crypto';
import { hashPassword } from '../../src/accounts/accounts/password.js';
import { addSession } from '../../src/accounts/accounts/sessions.js';
import type { Database } from '../../src/platform/database/database.js';
import { SESSION_COOKIE } from '../../api/auth/session-cookie.js';

/** Of every account that is made here. */
export const PASSWORD = 'a-password-of-tests';

/** Hashing is dear on purpose: once for all accounts of a process. */
let hashed: Promise<string> | undefined;

/** A user who has registered. */
export interface TestAccount {
  readonly id: string;
  readonly email: string;
  readonly password: string;
  /** As it is stored. */
  readonly passwordHash: string;
}

/** An account as registration leaves it, for tests of something else. */
export async function makeAccount(
  database: Database,
  { email = `${randomUUID()}@example.com`, isAdmin = false } = {},
): Promise<TestAccount> {
  const passwordHash = await (hashed ??= hashPassword(PASSWORD, 'tests'));
  const id = randomUUID();
  await database.asPlatform().transaction((db) =>
    db.User.create({
      ...{ id, email, name: email, isAdmin, passwordHash },
      referralCode: randomUUID().slice(0, 12).toUpperCase(),
    }),
  );
  return { id, email, password: PASSWORD, passwordHash };
}

/** Signs somebody in, in a browser of their own. @returns the header of its requests. */
export async function signIn(database: Database, { id }: { readonly id: string }): Promise<string> {
  const place = { address: '192.0.2.1', requestId: randomUUID(), userAgent: undefined };
  const { token } = await database
    .asPlatform()
    .transaction((db) => addSession(db, id, 'password', place));
  return `${SESSION_COOKIE}=${token}`;
}
