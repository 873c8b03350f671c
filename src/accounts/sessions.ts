import { randomBytes } from 'node:crypto';
import type { Database } from '../database/database.js';
import { tokenHash } from '../secrets/token-hash.js';
import { isAdmin, type AdminRules } from './admin.js';
import type { Plan } from './plans.js';
import type { SignedInUser } from './sign-in.js';

/** How long a session lasts, in milliseconds: 30 days. */
export const SESSION_LIFETIME_MS = 30 * 24 * 60 * 60 * 1000;

const TOKEN_BYTES = 32;
/** A token as it is issued: anything else is not worth a query. */
const TOKEN_FORM = /^[\w-]{43}$/;

/** Expired sessions that one sign-in clears away at most. */
const MAX_PURGED_AT_ONCE = 50;

/** A session of a signed-in user. */
export interface Session {
  readonly user: SignedInUser;
  /** The plan that the user is on now, if any. */
  readonly plan: Plan | undefined;
  /** What a state-changing request from another site would have to know. */
  readonly csrfToken: string;
  readonly expiresAt: Date;
}

/** A session's secrets, at the one moment when they are known. */
export interface NewSession {
  /** The cookie's value: 32 random bytes in base64url. Only its hash is stored. */
  readonly token: string;
  readonly csrfToken: string;
  readonly expiresAt: Date;
}

/** Opens a session, and clears away some that have expired. */
export async function createSession(database: Database, userId: string): Promise<NewSession> {
  const session = {
    token: randomBytes(TOKEN_BYTES).toString('base64url'),
    csrfToken: randomBytes(TOKEN_BYTES).toString('base64url'),
    expiresAt: new Date(Date.now() + SESSION_LIFETIME_MS),
  };
  const { csrfToken, expiresAt } = session;
  await database.asPlatform().transaction(async (db) => {
    await db.Session.create({ tokenHash: tokenHash(session.token), userId, csrfToken, expiresAt });
    // Skipping what another sign-in is clearing: two of them never wait for each other.
    await db.query(
      `DELETE FROM sessions WHERE token_hash IN (
         SELECT token_hash FROM sessions WHERE expires_at <= now()
         ORDER BY expires_at LIMIT ${MAX_PURGED_AT_ONCE} FOR UPDATE SKIP LOCKED)`,
    );
  });
  return session;
}

const FIND = { name: 'find_session', text: 'SELECT * FROM find_session($1)' };

interface SessionFound {
  readonly id: string;
  readonly name: string;
  readonly email: string;
  readonly is_admin: boolean;
  readonly csrf_token: string;
  readonly expires_at: Date;
  readonly plan: Plan | null;
}

/**
 * The session of a cookie's token with the user's plan, in one query; none when it is unknown or has
 * expired.
 */
export async function findSession(
  database: Database,
  token: string,
  rules: AdminRules,
): Promise<Session | undefined> {
  if (!TOKEN_FORM.test(token)) return undefined;
  const [found] = await database.call<SessionFound>(FIND, [tokenHash(token)]);
  if (!found) return undefined;
  const user = { id: found.id, name: found.name, email: found.email };
  return {
    user: { ...user, isAdmin: isAdmin({ ...user, isAdmin: found.is_admin }, rules) },
    plan: found.plan ?? undefined,
    csrfToken: found.csrf_token,
    expiresAt: found.expires_at,
  };
}

/** Ends a session. Whoever holds its token may; an unknown one is no error. */
export async function deleteSession(database: Database, token: string): Promise<void> {
  if (!TOKEN_FORM.test(token)) return;
  await database.asPlatform().transaction(async (db) => {
    await db.Session.destroy({
      where: { tokenHash: tokenHash(token) },
    });
  });
}
