import { run, type Migration } from './migration.js';

/**
 * Configurations that operations brought before they were sealed, of operations that have ended: nobody
 * reads them any more.
 */
export const migration: Migration = {
  async up(context) {
    await run(
      context,
      `UPDATE operations SET input = input - 'config' - 'skill'
        WHERE finished_at IS NOT NULL AND input ?| ARRAY['config', 'skill'];`,
    );
  },

  async down() {
    // What was forgotten is not missed.
  },
};
