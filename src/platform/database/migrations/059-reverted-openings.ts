import { run, type Migration } from './migration.js';

/** Openings of payment sessions that were reverted on chain, of which there are to be few. */
export const migration: Migration = {
  up: (context) =>
    run(
      context,
      `CREATE INDEX payment_sessions_reverted ON payment_sessions (created_at)
         WHERE failure = 'reverted';`,
    ),

  down: (context) => run(context, 'DROP INDEX payment_sessions_reverted;'),
};
