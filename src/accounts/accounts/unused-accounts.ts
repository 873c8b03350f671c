import { randomUUID } from 'node:crypto';
import type { Database } from '../../platform/database/database.js';

/** Days without use after which an account is deleted. The audit log has at least as many days. */
const UNUSED_DAYS = 90;

/** Deletions that one call requests; each is a run of its own. */
const MOST = 100;

const CUTOFF = `now() - make_interval(days => ${UNUSED_DAYS})`;

/**
 * Accounts without sign-in, plan, agent, key and bought credit. A wallet whose only key is stored here may
 * have money too, and an open payment session has. The log is read last, for the few accounts that are left.
 */
const UNUSED = `
  WITH idle AS MATERIALIZED (
    SELECT u.id FROM users u
     WHERE u.created_at < ${CUTOFF} AND NOT u.is_admin
       AND NOT EXISTS (SELECT FROM sessions s WHERE s.user_id = u.id)
       AND NOT EXISTS (SELECT FROM api_keys k WHERE k.user_id = u.id)
       AND NOT EXISTS (SELECT FROM agents a WHERE a.user_id = u.id)
       AND NOT EXISTS (SELECT FROM subscriptions p
                        WHERE p.user_id = u.id
                          AND (p.updated_at > ${CUTOFF} OR p.status <> 'cancelled'
                               AND (p.period_end IS NULL OR p.period_end > ${CUTOFF})))
       AND NOT EXISTS (SELECT FROM ledger_accounts c
                        WHERE c.user_id = u.id AND c.name = 'user:' || u.id || ':credits'
                          AND c.balance > 0)
       AND NOT EXISTS (SELECT FROM wallets w
                        WHERE w.user_id = u.id AND w.sealed_key IS NOT NULL AND NOT w.brought)
       AND NOT EXISTS (SELECT FROM payment_sessions o
                        WHERE o.user_id = u.id AND o.state NOT IN ('closed', 'failed'))
       AND NOT EXISTS (SELECT FROM account_deletions d WHERE d.user_id = u.id)
  ), unused AS (
    SELECT id FROM idle WHERE NOT EXISTS (
      SELECT FROM audit_log l WHERE l.user_id = idle.id AND l.actor = idle.id AND l.at > ${CUTOFF}))`;

const LOCK = `${UNUSED}
  SELECT id FROM users WHERE id IN (SELECT id FROM unused) LIMIT $most FOR UPDATE SKIP LOCKED`;

// A sign-in may have come before the lock, so each account is examined again.
const CLOSE = `${UNUSED}, closed AS (
    INSERT INTO account_deletions (user_id, request_id)
    SELECT id, $requestId FROM unused WHERE id = ANY ($ids) ON CONFLICT DO NOTHING RETURNING user_id
  )
  INSERT INTO audit_log (actor, user_id, action, subject, detail, request_id)
  SELECT 'platform', user_id, 'account.delete', user_id, '{"reason": "unused"}', $requestId FROM closed
  RETURNING user_id`;

/** Requests the deletion of unused accounts, as their owners would; returns how many, 0 if none is left. */
export async function closeUnusedAccounts(database: Database, most: number): Promise<number> {
  return database.asPlatform().transaction(async (db) => {
    const found = await db.query<{ id: string }>(LOCK, { most: Math.min(most, MOST) });
    if (found.length === 0) return 0;
    const ids = found.map(({ id }) => id);
    return (await db.query(CLOSE, { ids, requestId: randomUUID() })).length;
  });
}
