import { run, type Migration } from './migration.js';

const RUN_DEBITS =
  'FUNCTION run_debits(text[], text[], text[], numeric[], timestamptz[], text[], text[], numeric, interval)';

/**
 * Debits find their rows by index alone. Their plans are made once for a connection, when the tables may
 * still be small or nothing may be known of them, and read all of them for each statement from there on.
 */
const BY_INDEX = ['enable_seqscan', 'enable_hashjoin', 'enable_mergejoin'] as const;

export const migration: Migration = {
  up: (context) =>
    run(context, `ALTER ${RUN_DEBITS} ${BY_INDEX.map((each) => `SET ${each} = off`).join(' ')};`),

  down: (context) =>
    run(context, `ALTER ${RUN_DEBITS} ${BY_INDEX.map((each) => `RESET ${each}`).join(' ')};`),
};
