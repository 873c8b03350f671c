import type { Database } from '../database/database.js';
import type { UserRow } from '../database/models.js';

/** The user with this id, or none. */
export async function findUser(database: Database, userId: string): Promise<UserRow | null> {
  return database.asUser(userId).transaction((db) => db.User.findByPk(userId));
}
