import { run, type Migration } from './migration.js';

/** Requests of operations: who asked, and what recovery needs to find and settle the open ones. */
export const migration: Migration = {
  async up(context) {
    await run(
      context,
      `ALTER TABLE operations
         ADD COLUMN requested_by text,
         ADD COLUMN request_id text,
         ADD COLUMN looked_at timestamptz NOT NULL DEFAULT now(),
         ALTER COLUMN requested_at SET DEFAULT now();
       CREATE INDEX operations_open ON operations (looked_at) WHERE finished_at IS NULL;`,
    );
  },

  async down(context) {
    await run(
      context,
      `DROP INDEX operations_open;
       ALTER TABLE operations
         DROP COLUMN requested_by, DROP COLUMN request_id, DROP COLUMN looked_at,
         ALTER COLUMN requested_at DROP DEFAULT;`,
    );
  },
};
