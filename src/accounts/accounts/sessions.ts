import { randomBytes, randomUUID } from 'node:crypto';
import { Op } from 'sequelize';
import { requireOpenCredential } from '../../platform/audit/added-by.js';
import { ofUser, recordAudit, type RequestOrigin } from '../../platform/audit/audit.js';
import { violates } from '../../platform/database/constraints.js';
import type {
  Database,
  TenantDatabase,
  TenantTransaction,
} from '../../platform/database/database.js';
import type { SessionRow } from '../../platform/database/models.js';
import { NotFoundError } from '../../lib/errors.js';
import { tokenHash } from '../../platform/secrets/token-hash.js';
import { TokenLookup } from '../../platform/secrets/token-lookup.js';
import { sanitizeForJsonb } from '../../lib/well-formed.js';
import { SUSPECT_DAYS } from './additions.js';
import { isOfDeletedAccount } from './account-deletions.js';
import { isAdmin, type AdminRules } from './admin.js';
import type { Plan } from '../../types/plans.js';
import { isProofValid, type SignedInUser, type SignInProof } from './sign-in.js';
import type { SignInMethod } from '../../types/sign-in-methods.js';

export const SESSION_LIFETIME_MS = 30 * 24 * 60 * 60 * 1000;

/** Maximum number of sessions per user: one more ends the oldest. */
export const MAX_SESSIONS = 100;

const TOKEN_BYTES = 32;
/** The form of an issued token; other texts are rejected without a query. */
const TOKEN_FORM = /^[\w-]{43}$/;

const MAX_USER_AGENT_LENGTH = 200;

/** A session of a signed-in user. */
export interface Session {
  /** Id by which the owner ends the session; it grants no access. */
  readonly id: string;
  readonly signedInAt: Date;
  /** Time of the last use, to the minute. */
  readonly lastSeenAt: Date;
  readonly user: SignedInUser;
  readonly plan: Plan | undefined;
  /** Token that a state-changing request must carry, which another site cannot read. */
  readonly csrfToken: string;
  readonly expiresAt: Date;
}

export type ListedSession = Pick<
  SessionRow,
  'id' | 'method' | 'createdAt' | 'lastSeenAt' | 'expiresAt' | 'userAgent' | 'address'
>;

export interface SignInOrigin extends RequestOrigin {
  readonly userAgent: string | undefined;
  /** The token of the browser's present session, which ends. */
  readonly replaces?: string | undefined;
  /** The id of the session if its proof may open only one session; otherwise random. */
  readonly sessionId?: string | undefined;
  /** The identity that signs in; by a password, the identity that last set the password. */
  readonly identityId?: string | undefined;
}

/** The secrets of a new session, returned only once. */
export interface NewSession {
  /** The cookie's value: 32 random bytes in base64url. Only its hash is stored. */
  readonly token: string;
  readonly expiresAt: Date;
}

/**
 * Opens a session that replaces the browser's present one.
 * @returns undefined when the proof no longer holds (as after a password change or an unlinked identity),
 * when a session with that id exists, or when the account is being deleted.
 */
export async function createSession(
  database: Database,
  proof: SignInProof,
  place: SignInOrigin,
): Promise<NewSession | undefined> {
  const opened = database.asPlatform().transaction(async (db) => {
    if (!(await isProofValid(db, proof))) return undefined;
    if (place.replaces !== undefined) await endByToken(db, place.replaces, place);
    const identityId = proof.method === 'password' ? undefined : proof.identityId;
    return addSession(db, proof.user.id, proof.method, { ...place, identityId });
  });
  return opened.catch((error: unknown) => {
    if (violates(error, 'sessions_id_key') || isOfDeletedAccount(error)) return undefined;
    throw error;
  });
}

/** Adds a session for a user who was authenticated in the same transaction. */
export async function addSession(
  db: TenantTransaction,
  userId: string,
  method: SignInMethod,
  { address, identityId, requestId, sessionId, userAgent }: SignInOrigin,
): Promise<NewSession> {
  const session = {
    token: randomBytes(TOKEN_BYTES).toString('base64url'),
    expiresAt: new Date(Date.now() + SESSION_LIFETIME_MS),
  };
  const { expiresAt } = session;
  await db.Session.create({
    id: sessionId ?? randomUUID(),
    tokenHash: tokenHash(session.token),
    userId,
    method,
    identityId: identityId ?? (method === 'password' ? await passwordSetter(db, userId) : null),
    expiresAt,
    address,
    userAgent:
      userAgent === undefined ? null : sanitizeForJsonb(userAgent.slice(0, MAX_USER_AGENT_LENGTH)),
  });
  await recordAudit(db, ofUser(userId, 'session.create', { address, requestId }));
  await db.query(
    `DELETE FROM sessions WHERE id IN (
       SELECT id FROM sessions WHERE user_id = $userId
       ORDER BY created_at DESC, id OFFSET ${MAX_SESSIONS})`,
    { userId },
  );
  return session;
}

/** Returns the identity whose session has set a user's password recently enough for an event to matter. */
async function passwordSetter(db: TenantTransaction, userId: string): Promise<string | null> {
  const [user] = await db.query<{ setter: string | null }>(
    `SELECT password_added_by AS setter FROM users
      WHERE id = $userId AND password_added_at > now() - interval '${SUSPECT_DAYS} days'`,
    { userId },
  );
  return user?.setter ?? null;
}

/** Derives the CSRF token from the session token, so that it need not be stored. */
const csrfTokenOf = (token: string): string => tokenHash(`csrf of ${token}`);

const FIND = {
  name: 'find_signed_in',
  text: `SELECT shown.hash, found.* FROM unnest($1::text[]) AS shown (hash)
         CROSS JOIN LATERAL find_signed_in(shown.hash) AS found`,
};

interface SessionFound {
  readonly hash: string;
  readonly session_id: string;
  readonly signed_in_at: Date;
  readonly last_seen_at: Date;
  readonly expires_at: Date;
  readonly id: string;
  readonly name: string;
  readonly email: string;
  readonly email_verified: boolean;
  readonly is_admin: boolean;
  readonly plan: Plan | null;
}

/** Looks up the sessions of cookies, with one round trip for concurrent lookups. */
export class SignedInSessions {
  readonly #tokens: TokenLookup<SessionFound>;
  readonly #rules: AdminRules;

  constructor(database: Database, rules: AdminRules) {
    this.#tokens = new TokenLookup(database, FIND);
    this.#rules = rules;
  }

  /** Finds the session of a cookie's token with the user's plan; undefined when no such session exists. */
  async find(token: string): Promise<Session | undefined> {
    if (!TOKEN_FORM.test(token)) return undefined;
    const found = await this.#tokens.find(token);
    if (!found) return undefined;
    const user = { id: found.id, name: found.name, email: found.email };
    const judged = { emailVerified: found.email_verified, isAdmin: found.is_admin };
    return {
      id: found.session_id,
      signedInAt: found.signed_in_at,
      lastSeenAt: found.last_seen_at,
      user: { ...user, isAdmin: isAdmin({ ...user, ...judged }, this.#rules) },
      plan: found.plan ?? undefined,
      csrfToken: csrfTokenOf(token),
      expiresAt: found.expires_at,
    };
  }
}

/** Ends the session of a token. An unknown token is no error. */
export async function deleteSession(
  database: Database,
  token: string,
  origin: RequestOrigin,
): Promise<void> {
  await database.asPlatform().transaction((db) => endByToken(db, token, origin));
}

async function endByToken(
  db: TenantTransaction,
  token: string,
  { address, requestId }: RequestOrigin,
): Promise<void> {
  if (!TOKEN_FORM.test(token)) return;
  const [ended] = await db.query<{ user_id: string }>(
    'DELETE FROM sessions WHERE token_hash = $hash RETURNING user_id',
    { hash: tokenHash(token) },
  );
  if (!ended) return;
  await recordAudit(db, ofUser(ended.user_id, 'session.delete', { address, requestId }));
}

/** Lists a user's sessions, last used first. */
export async function listSessions(
  tenant: TenantDatabase,
  userId: string,
): Promise<ListedSession[]> {
  return tenant.transaction((db) =>
    db.Session.findAll({
      attributes: [
        'id',
        'method',
        'createdAt',
        'lastSeenAt',
        'expiresAt',
        'userAgent',
        'address',
      ] as const,
      where: { userId, expiresAt: { [Op.gt]: new Date() } },
      order: [
        ['lastSeenAt', 'DESC'],
        ['createdAt', 'DESC'],
        ['id', 'ASC'],
      ],
      limit: MAX_SESSIONS,
    }),
  );
}

/** Ends a session of the user. @throws NotFoundError also when the session is another user's. */
export async function endSession(
  tenant: TenantDatabase,
  userId: string,
  id: string,
  origin: RequestOrigin,
): Promise<void> {
  await tenant.transaction(async (db) => {
    const ended = await db.Session.destroy({ where: { id, userId } });
    if (ended === 0) throw new NotFoundError('Session not found');
    await recordAudit(db, { ...ofUser(userId, 'session.delete', origin), subject: id });
  });
}

/**
 * Checks that a session is open and locks its account until the transaction ends.
 * @returns the identity that opened the session, if one did.
 * @throws UnauthorizedError when the session has ended.
 */
export const requireOpenSession = (
  db: TenantTransaction,
  { userId, sessionId }: { readonly userId: string; readonly sessionId: string },
): Promise<string | null> => requireOpenCredential(db, userId, { sessionId });

/** Ends all of a user's sessions except the given one. @returns the number ended. */
export async function endOtherSessions(
  tenant: TenantDatabase,
  userId: string,
  current: string,
  origin: RequestOrigin,
): Promise<number> {
  return tenant.transaction(async (db) => {
    const ended = await db.Session.destroy({ where: { userId, id: { [Op.ne]: current } } });
    if (ended > 0) await recordAudit(db, ofUser(userId, 'session.delete-others', origin));
    return ended;
  });
}
