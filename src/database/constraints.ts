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
