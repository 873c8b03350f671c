import { run, type Migration } from './migration.js';

/** When an agent's files were written by somebody other than the agent. */
export const migration: Migration = {
  async up(context) {
    await run(context, 'ALTER TABLE agent_volumes ADD COLUMN written_at timestamptz');
  },

  async down(context) {
    await run(context, 'ALTER TABLE agent_volumes DROP COLUMN written_at');
  },
};
