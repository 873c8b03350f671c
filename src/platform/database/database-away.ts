import pg from 'pg';
import { ConnectionError, DatabaseError } from 'sequelize';

/** SQLSTATE codes of a failed connection, of a server that starts or stops, and of one without a free connection. */
const AWAY = /^(?:08|57P|53300$)/;

/**
 * Reports whether the database failed to answer. A retry may succeed; the work may already have taken effect.
 */
export function isDatabaseAway(error: unknown): error is ConnectionError | DatabaseError {
  if (error instanceof ConnectionError) return true;
  if (!(error instanceof DatabaseError)) return false;
  const { parent } = error;
  // The server gives each of its errors a code; a broken connection is an error of the driver.
  return parent instanceof pg.DatabaseError ? AWAY.test(parent.code ?? '') : true;
}
