import type { Database } from '../database/database.js';
import { checkSchema } from '../database/start-check.js';
import type { Check } from './readiness.js';

/** Makes the checks of a process that uses the database. */
export function databaseChecks(database: Pick<Database, 'call' | 'ping'>) {
  return {
    database: () => database.ping(),
    schema: async () => void (await checkSchema(database)),
  } satisfies Record<string, Check>;
}
