import { run, type Migration } from './migration.js';

/** What agents' memories take of their hosts' disks. */
export const migration: Migration = {
  async up(context) {
    await run(
      context,
      `ALTER TABLE agent_volumes
         ADD COLUMN bytes bigint,
         ADD COLUMN files bigint,
         ADD COLUMN measured_at timestamptz,
         ADD COLUMN told_at timestamptz;`,
    );
  },

  async down(context) {
    await run(
      context,
      `ALTER TABLE agent_volumes
         DROP COLUMN told_at, DROP COLUMN measured_at, DROP COLUMN files, DROP COLUMN bytes;`,
    );
  },
};
