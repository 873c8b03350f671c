import { ownedThrough, protectTable, run, type Migration } from './migration.js';

/** What an agent runs and where its memory is, what it goes back to, and its archived memories. */
export const migration: Migration = {
  async up(context) {
    await run(
      context,
      `ALTER TABLE agents
         ADD COLUMN volume text,
         ADD COLUMN previous_release jsonb,
         ADD COLUMN failed_image text;

       CREATE TABLE agent_archives (
         id text PRIMARY KEY,
         agent_id text NOT NULL,
         user_id text NOT NULL,
         volume text NOT NULL,
         reason text NOT NULL CHECK (reason IN ('reset-memory', 'restore')),
         created_at timestamptz NOT NULL,
         FOREIGN KEY (agent_id, user_id) REFERENCES agents (id, user_id) ON DELETE CASCADE
       );
       CREATE INDEX agent_archives_agent_created ON agent_archives (agent_id, created_at DESC);`,
    );
    const owned = ownedThrough('user_id');
    await protectTable(context, 'agent_archives', 'SELECT, INSERT, DELETE', owned);
  },

  async down(context) {
    await run(
      context,
      `DROP TABLE agent_archives;
       ALTER TABLE agents DROP COLUMN volume, DROP COLUMN previous_release, DROP COLUMN failed_image;`,
    );
  },
};
