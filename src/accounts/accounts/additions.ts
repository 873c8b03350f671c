import type { Statements } from '../../platform/database/database.js';

/** Days before the report of a hijacking within which additions count as the hijacker's. */
export const SUSPECT_DAYS = 30;

/**
 * The identities of an account that are reported as hijacked, and those that their sessions linked within
 * the time, each with the start of the time. Unlinked identities count, or unlinking would hide additions.
 */
const SUSPECTS = `
  WITH RECURSIVE ways AS (
    SELECT id, added_by, created_at AS linked_at, disabled_at, reported_at FROM identities
     WHERE user_id = $userId
    UNION ALL
    SELECT id, added_by, linked_at, disabled_at, reported_at FROM unlinked_identities
     WHERE user_id = $userId
  ), suspects (id, since) AS (
    SELECT id, coalesce(reported_at, disabled_at) - interval '${SUSPECT_DAYS} days' FROM ways
     WHERE disabled_at IS NOT NULL
    UNION
    SELECT w.id, s.since FROM suspects s JOIN ways w ON w.added_by = s.id AND w.linked_at > s.since
  )`;

const isSuspect = (addedBy: string, addedAt: string) =>
  `EXISTS (SELECT FROM suspects s WHERE s.id = ${addedBy} AND ${addedAt} > s.since)`;

/** Tables of additions; of a suspended row, `suspended_at` is set. */
const TABLES = ['identities', 'api_keys', 'wallets', 'provider_keys'] as const;

/**
 * Suspends what sessions of hijacked identities have added to an account, and ends the suspension of all
 * else. The account's row must be locked.
 */
export async function suspendAdditions(db: Statements, userId: string): Promise<void> {
  const condition = isSuspect('a.added_by', 'a.created_at');
  for (const table of TABLES) {
    await db.query(
      `${SUSPECTS}
       UPDATE ${table} a SET suspended_at = CASE WHEN ${condition} THEN now() END
        WHERE a.user_id = $userId AND (a.suspended_at IS NOT NULL) <> ${condition}`,
      { userId },
    );
  }
  const isPasswordSuspect = isSuspect('u.password_added_by', 'u.password_added_at');
  await db.query(
    `${SUSPECTS}
     UPDATE users u SET suspended_password_hash = password_hash, password_hash = NULL
      WHERE u.id = $userId AND password_hash IS NOT NULL AND ${isPasswordSuspect}`,
    { userId },
  );
  await db.query(
    `${SUSPECTS}
     UPDATE users u SET password_hash = coalesce(password_hash, suspended_password_hash),
            suspended_password_hash = NULL
      WHERE u.id = $userId AND suspended_password_hash IS NOT NULL AND NOT ${isPasswordSuspect}`,
    { userId },
  );
}

/** Action of the audit log for a changed address; its detail has the identity of the session. */
export const EMAIL_CHANGE = 'email.change';

/** Selects the last change of an account's address; the audit log keeps it for longer than additions are suspects. */
const LAST_CHANGE = `
  SELECT at, detail ->> 'identityId' AS changed_by FROM audit_log
   WHERE user_id = $userId AND action = '${EMAIL_CHANGE}' ORDER BY id DESC LIMIT 1`;

/** Returns the account's address if a session of a hijacked identity has given it: the hijacker has its mailbox. */
export async function suspectAddress(db: Statements, userId: string): Promise<string | undefined> {
  const [found] = await db.query<{ email: string }>(
    `${SUSPECTS}
     SELECT u.email FROM users u, (${LAST_CHANGE}) AS last
      WHERE u.id = $userId AND ${isSuspect('last.changed_by', 'last.at')}`,
    { userId },
  );
  return found?.email;
}

/**
 * Returns the identity whose session has given an account its address recently enough for an event to matter: what
 * the mailbox adds is that identity's addition.
 */
export async function addressGiver(db: Statements, userId: string): Promise<string | null> {
  const [last] = await db.query<{ giver: string | null }>(
    `SELECT changed_by AS giver FROM (${LAST_CHANGE}) AS last
      WHERE at > now() - interval '${SUSPECT_DAYS} days'`,
    { userId },
  );
  return last?.giver ?? null;
}
