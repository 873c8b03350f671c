import { ForeignKeyConstraintError, Op, type Transaction } from 'sequelize';
import type { Database } from '../database/database.js';
import type { Models } from '../database/models.js';
import { NotFoundError } from '../errors.js';
import type { Plan } from './plans.js';

/**
 * Gives a user a plan from now on, in place of the one they had.
 *
 * @param source who or what grants it, such as `operator`.
 * @throws NotFoundError when there is no such user.
 */
export async function grantPlan(
  database: Database,
  userId: string,
  plan: Plan,
  source: string,
): Promise<void> {
  const subscription = { userId, plan, source, status: 'active', periodEnd: null } as const;
  try {
    await database.asPlatform().transaction(async (transaction) => {
      await database.models.Subscription.upsert(
        { ...subscription, periodStart: new Date() },
        { transaction },
      );
    });
  } catch (error) {
    if (error instanceof ForeignKeyConstraintError) throw new NotFoundError('User not found');
    throw error;
  }
}

/** The plan a user is on now, if any. */
export async function planOf(database: Database, userId: string): Promise<Plan | undefined> {
  return database
    .asUser(userId)
    .transaction((transaction) => findPlan(database.models, userId, transaction));
}

/** Like `planOf`, within a transaction that may see the user's rows. */
export async function findPlan(
  models: Models,
  userId: string,
  transaction: Transaction,
): Promise<Plan | undefined> {
  const subscription = await models.Subscription.findOne({
    attributes: ['plan'],
    where: {
      userId,
      status: 'active',
      periodEnd: { [Op.or]: [{ [Op.is]: null }, { [Op.gt]: new Date() }] },
    },
    transaction,
  });
  return subscription?.plan;
}
