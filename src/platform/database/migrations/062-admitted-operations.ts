import { run, type Migration } from './migration.js';

/** When an operation was told as accepted: from then on it is not taken back. */
export const migration: Migration = {
  async up(context) {
    await run(context, 'ALTER TABLE operations ADD COLUMN admitted_at timestamptz');
  },

  async down(context) {
    await run(context, 'ALTER TABLE operations DROP COLUMN admitted_at');
  },
};
