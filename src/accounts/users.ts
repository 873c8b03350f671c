import type { Database } from '../database/database.js';
import type { UserRow } from '../database/models.js';
import { selectFrom } from '../database/table.js';
import { User } from '../database/tables/accounts.js';

/** The user with this id, or none. */
export async function findUser(database: Database, userId: string): Promise<UserRow | null> {
  const sql = `${selectFrom(User)} WHERE id = $userId`;
  const [user] = await database.asUser(userId).query<UserRow>(sql, { userId });
  return user ?? null;
}
