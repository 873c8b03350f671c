import { run, type Migration } from './migration.js';

/** Whose agent a notification tells of: turns are dealt by owner. */
export const migration: Migration = {
  async up(context) {
    await run(
      context,
      `-- Empty in what the running release still writes: one owner among the others.
       ALTER TABLE notifications ADD COLUMN user_id text NOT NULL DEFAULT '';`,
    );
  },

  async down(context) {
    await run(context, 'ALTER TABLE notifications DROP COLUMN user_id;');
  },
};
