import { run, type Migration } from './migration.js';

/** Agents that are being removed are few, and looked for every quarter of a minute. */
export const migration: Migration = {
  async up(context) {
    await run(
      context,
      `CREATE INDEX agents_being_removed ON agents (id)
        WHERE desired = 'deleted' AND deleted_at IS NULL;`,
    );
  },

  async down(context) {
    await run(context, 'DROP INDEX agents_being_removed;');
  },
};
