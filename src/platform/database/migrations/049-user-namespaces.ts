import { run, type Migration } from './migration.js';

/** Whether the agents of a host have users of their own. */
export const migration: Migration = {
  async up(context) {
    await run(context, 'ALTER TABLE hosts ADD COLUMN user_namespaces boolean');
  },

  async down(context) {
    await run(context, 'ALTER TABLE hosts DROP COLUMN user_namespaces');
  },
};
