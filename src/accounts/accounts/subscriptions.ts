import { ForeignKeyConstraintError } from 'sequelize';
import { recordAudit } from '../../platform/audit/audit.js';
import type { Requester } from '../../platform/audit/requester.js';
import type { Database, Statements } from '../../platform/database/database.js';
import { NotFoundError } from '../../lib/errors.js';
import type { Plan, SubscriptionKind } from '../../types/plans.js';

/** The subscription that counts, or else the one that ended last. */
export interface CurrentSubscription {
  readonly plan: string;
  readonly holds: boolean;
  readonly source: string;
  readonly status: 'active' | 'past_due' | 'cancelled';
  readonly periodEnd: Date | null;
}

/** Returns a user's current subscription of a kind; undefined if there never was one. */
export async function findSubscription(
  db: Statements,
  userId: string,
  kind: SubscriptionKind,
): Promise<CurrentSubscription | undefined> {
  const [found] = await db.query<CurrentSubscription>(
    `SELECT plan, holds, source, status, period_end AS "periodEnd"
       FROM current_subscription($userId, $kind)`,
    { userId, kind },
  );
  return found;
}

const GRANT = `
  INSERT INTO subscriptions (user_id, plan, status, source, period_start, created_at, updated_at)
  VALUES ($userId, $plan, 'active', 'operator', now(), now(), now())
  ON CONFLICT (user_id) WHERE processor_id IS NULL DO UPDATE
    SET plan = excluded.plan, status = excluded.status, source = excluded.source,
        period_start = excluded.period_start, period_end = NULL, holds_until = NULL,
        updated_at = excluded.updated_at`;

/** Grants a plan immediately, and records who granted it. @throws NotFoundError without such a user */
export async function grantPlan(
  database: Database,
  userId: string,
  plan: Plan,
  by: Pick<Requester, 'actor' | 'requestId'>,
): Promise<void> {
  try {
    await database.asPlatform().transaction(async (db) => {
      await db.query(GRANT, { userId, plan });
      await recordAudit(db, {
        actor: by.actor,
        userId,
        action: 'subscription.grant',
        subject: userId,
        detail: { plan },
        requestId: by.requestId,
      });
    });
  } catch (error) {
    if (error instanceof ForeignKeyConstraintError) throw new NotFoundError('User not found');
    throw error;
  }
}
