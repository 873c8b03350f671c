import { isAdminUser, type AdminRules } from './admin.js';
import type { Database } from '../../platform/database/database.js';
import type { UserRow } from '../../platform/database/models.js';
import { selectFrom } from '../../platform/database/schema/table.js';
import { User } from '../../platform/database/tables/accounts.js';

export async function findUser(database: Database, userId: string): Promise<UserRow | null> {
  const sql = `${selectFrom(User)} WHERE id = $userId`;
  const [user] = await database.asUser(userId).query<UserRow>(sql, { userId });
  return user ?? null;
}

/** Reports whether the user is an admin; false for an unknown user. */
export async function isAdminById(
  database: Database,
  userId: string,
  rules: AdminRules,
): Promise<boolean> {
  const user = await findUser(database, userId);
  return user !== null && isAdminUser(user, rules);
}
