import pg from 'pg';
import { BaseError } from 'sequelize';

/**
 * Tells whether an error is the refusal by the named unique index or other constraint. Sequelize's
 * own list of fields stays empty here: PostgreSQL withholds them under row-level security.
 */
export function violates(error: unknown, constraint: string): boolean {
  if (!(error instanceof BaseError) || !('parent' in error)) return false;
  return error.parent instanceof pg.DatabaseError && error.parent.constraint === constraint;
}

/** SQLSTATE classes of data exceptions and of violated constraints. */
const OF_THE_DATA = ['22', '23'];

/** Tells whether the database refuses what it was given, and would also when asked again. */
export function refusesData(error: unknown): boolean {
  if (!(error instanceof BaseError) || !('parent' in error)) return false;
  const { parent } = error;
  return parent instanceof pg.DatabaseError && OF_THE_DATA.includes(parent.code?.slice(0, 2) ?? '');
}
