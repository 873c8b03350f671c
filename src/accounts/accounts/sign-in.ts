import type { Database, TenantTransaction } from '../../platform/database/database.js';
import { isAdmin, type AdminRules } from './admin.js';
import { normalizeEmail } from './email.js';
import type { ClientNetworks } from '../../platform/http/client-networks.js';
import { comparePassword, DUMMY_HASH } from './password.js';
import { SignInLimits } from './sign-in-limits.js';
import type { SignInMethod } from '../../types/sign-in-methods.js';

export interface SignedInUser {
  readonly id: string;
  readonly name: string;
  readonly email: string;
  readonly isAdmin: boolean;
}

export interface PasswordProof {
  readonly user: SignedInUser;
  readonly method: 'password';
  /** The stored hash that the password matched. */
  readonly passwordHash: string;
}

export interface IdentityProof {
  readonly user: SignedInUser;
  readonly method: Exclude<SignInMethod, 'password'>;
  readonly identityId: string;
}

export type SignInProof = PasswordProof | IdentityProof;

/**
 * Reports whether a proof still holds. Locks the user's row, then the identity's, until the transaction ends:
 * a password change or unlink either commits before and is seen here, or waits and ends the session.
 */
export async function isProofValid(db: TenantTransaction, proof: SignInProof): Promise<boolean> {
  const { id } = proof.user;
  if (proof.method === 'password') {
    const found = await db.query(
      'SELECT FROM users WHERE id = $id AND password_hash = $passwordHash FOR SHARE',
      { id, passwordHash: proof.passwordHash },
    );
    return found.length > 0;
  }
  const user = await db.query('SELECT FROM users WHERE id = $id FOR SHARE', { id });
  const identity = await db.query(
    `SELECT FROM identities WHERE id = $identityId AND user_id = $id AND disabled_at IS NULL
        AND suspended_at IS NULL FOR SHARE`,
    { id, identityId: proof.identityId },
  );
  return user.length > 0 && identity.length > 0;
}

const FIND = { name: 'find_password_holder', text: 'SELECT * FROM find_password_holder($1, $2)' };

interface Account {
  readonly id: string;
  readonly name: string;
  readonly email: string;
  readonly email_verified: boolean;
  readonly is_admin: boolean;
  readonly password_hash: string | null;
  readonly known: boolean;
}

export interface PasswordSignIn {
  readonly email: string;
  readonly password: string;
  readonly from: ClientNetworks;
}

/**
 * Verifies an email and password; returns undefined when they do not match. An unknown email takes as long
 * and counts as much as a wrong password, so that responses do not reveal which accounts exist.
 * @throws TooManyRequestsError after too many failures, or when the hashing queue is full.
 */
export async function verifyPassword(
  database: Database,
  { email, password, from }: PasswordSignIn,
  rules: AdminRules,
): Promise<PasswordProof | undefined> {
  const address = normalizeEmail(email);
  const [found] = await database.call<Account>(FIND, [address, from.host]);
  const attempt = { email: address, from, known: found?.known === true };
  const account = await new SignInLimits(database).attempt(attempt, async () => {
    const stored = found?.password_hash ?? DUMMY_HASH;
    const { matches, rehashed } = await comparePassword(password, stored, from.site);
    if (!matches || !found?.password_hash) return undefined;
    if (rehashed === undefined) return { ...found, password_hash: stored };
    const current = await renewHash(database, { id: found.id, stored, rehashed });
    if (current === rehashed) return { ...found, password_hash: rehashed };
    // Another request replaced the hash first: a concurrent sign-in or a password change.
    const again = await comparePassword(password, current ?? DUMMY_HASH, from.site);
    return again.matches && current !== null ? { ...found, password_hash: current } : undefined;
  });
  if (!account) return undefined;
  await rememberHost(database, account.id, from.host);
  const user = { id: account.id, name: account.name, email: account.email };
  const judged = { emailVerified: account.email_verified, isAdmin: account.is_admin };
  return {
    user: { ...user, isAdmin: isAdmin({ ...user, ...judged }, rules) },
    method: 'password',
    passwordHash: account.password_hash,
  };
}

/** Replaces an older hash of the same password. @returns the hash now stored. */
async function renewHash(
  database: Database,
  { id, stored, rehashed }: { id: string; stored: string; rehashed: string },
): Promise<string | null> {
  return database.asPlatform().transaction(async (db) => {
    const count = await db.User.update(
      { passwordHash: rehashed },
      { where: { id, passwordHash: stored } },
    );
    if (count > 0) return rehashed;
    const user = await db.User.findByPk(id, { attributes: ['passwordHash'] });
    return user?.passwordHash ?? null;
  });
}

/** Maximum number of known hosts per user. */
const MAX_HOSTS = 20;

/** Records the host with a precision of a day, and removes expired hosts of all users. */
async function rememberHost(database: Database, userId: string, host: string): Promise<void> {
  await database.asPlatform().query(
    `WITH remembered AS (
       INSERT INTO sign_in_hosts (user_id, host, last_at) VALUES ($userId, $host, now())
       ON CONFLICT (user_id, host) DO UPDATE SET last_at = now()
        WHERE sign_in_hosts.last_at < now() - interval '1 day'
     ), old AS (
       SELECT user_id, host FROM sign_in_hosts WHERE last_at < now() - interval '90 days'
        ORDER BY last_at LIMIT 20
     )
     DELETE FROM sign_in_hosts h
      WHERE (h.user_id, h.host) <> ($userId, $host)
        AND ((h.user_id, h.host) IN (SELECT user_id, host FROM old)
          OR (h.user_id, h.host) IN (SELECT user_id, host FROM sign_in_hosts WHERE user_id = $userId
                                      ORDER BY last_at DESC OFFSET ${MAX_HOSTS - 1}))`,
    { userId, host },
  );
}
