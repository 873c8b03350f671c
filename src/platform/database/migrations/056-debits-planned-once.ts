import { run, type Migration } from './migration.js';

const RUN_DEBITS =
  'FUNCTION run_debits(text[], text[], text[], numeric[], timestamptz[], text[], text[], numeric, interval)';

/**
 * Debits keep their plans. Left to itself PostgreSQL plans them anew each time, for just as many as there
 * are: that takes a seventh to a quarter of a statement's processor time, and finds the same indexes
 * (`052-debits-by-index.ts`).
 */
export const migration: Migration = {
  up: (context) => run(context, `ALTER ${RUN_DEBITS} SET plan_cache_mode = force_generic_plan;`),

  down: (context) => run(context, `ALTER ${RUN_DEBITS} RESET plan_cache_mode;`),
};
