import pg from 'pg';
import { BaseError } from 'sequelize';

/** Reports a violation of the constraint; under row-level security, Sequelize's own fields are empty. */
export function violates(error: unknown, constraint: string): boolean {
  if (!(error instanceof BaseError) || !('parent' in error)) return false;
  return error.parent instanceof pg.DatabaseError && error.parent.constraint === constraint;
}

/** SQLSTATE classes of data exceptions and of constraint violations. */
const OF_THE_DATA = ['22', '23'];

/** Reports whether the database refuses the data itself, so that a retry fails too. */
export function refusesData(error: unknown): boolean {
  if (!(error instanceof BaseError) || !('parent' in error)) return false;
  const { parent } = error;
  return parent instanceof pg.DatabaseError && OF_THE_DATA.includes(parent.code?.slice(0, 2) ?? '');
}
