import { ForeignKeyConstraintError } from 'sequelize';
import { recordAudit } from '../../platform/audit/audit.js';
import type { Requester } from '../../platform/audit/requester.js';
import type { Database, Statements } from '../../platform/database/database.js';
import { NotFoundError } from '../../lib/errors.js';
import type { Plan } from '../../types/plans.js';

/** Grants a plan immediately, and records who granted it. @throws NotFoundError without such a user */
export async function grantPlan(
  database: Database,
  userId: string,
  plan: Plan,
  by: Pick<Requester, 'actor' | 'requestId'>,
): Promise<void> {
  const subscription = {
    userId,
    plan,
    source: 'operator',
    status: 'active',
    periodEnd: null,
  } as const;
  try {
    await database.asPlatform().transaction(async (db) => {
      await db.Subscription.upsert({ ...subscription, periodStart: new Date() });
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

/** Returns the user's current plan, if any. The caller needs access to the user's rows. */
export async function findPlan(db: Statements, userId: string): Promise<Plan | undefined> {
  const [subscription] = await db.query<{ plan: Plan }>(
    `SELECT plan FROM subscriptions WHERE user_id = $userId AND status = 'active'
        AND (period_end IS NULL OR period_end > now())`,
    { userId },
  );
  return subscription?.plan;
}
