import { ForeignKeyConstraintError } from 'sequelize';
import { recordAudit } from '../../platform/audit/audit.js';
import type { Requester } from '../../platform/audit/requester.js';
import type { Database } from '../../platform/database/database.js';
import { NotFoundError } from '../../lib/errors.js';
import type { Plan } from '../../types/plans.js';

/** Grants a plan immediately, and records who granted it. @throws NotFoundError without such a user */
export async function grantPlan(
  database: Database,
  userId: string,
  plan: Plan,
  by: Pick<Requester, 'actor' | 'requestId'>,
): Promise<void> {
  const active = { source: 'operator', status: 'active', periodEnd: null } as const;
  try {
    await database.asPlatform().transaction(async (db) => {
      await db.Subscription.upsert({ ...active, userId, plan, periodStart: new Date() });
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
