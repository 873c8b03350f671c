import type { Statements } from '../../src/platform/database/database.js';
import {
  inSnakeCase,
  type NewRowOf,
  type Table,
} from '../../src/platform/database/schema/table.js';

/** Inserts a row into a table that has no model. */
export async function insertRow<T extends Table>(
  db: Statements,
  table: T,
  row: NewRowOf<T>,
): Promise<void> {
  const names = Object.keys(row);
  const values = Object.entries(row).map(([name, value]) => [name, storedOf(value)]);
  await db.query(
    `INSERT INTO ${table.name} (${names.map(inSnakeCase).join(', ')})
     VALUES (${names.map((name) => `$${name}`).join(', ')})`,
    Object.fromEntries(values),
  );
}

/** The driver would store an array as an array of PostgreSQL. */
const storedOf = (value: unknown) =>
  typeof value === 'object' && !(value instanceof Date) ? JSON.stringify(value) : value;
