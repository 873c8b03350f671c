import { ownedThrough, protectTable, run, type Migration } from './migration.js';

/** What agents' tools are given as environment variables. */
export const migration: Migration = {
  async up(context) {
    await run(
      context,
      `CREATE TABLE agent_credentials (
         operation_id text PRIMARY KEY,
         agent_id text NOT NULL,
         user_id text NOT NULL,
         name text NOT NULL,
         sealed text,
         state text NOT NULL CHECK (state IN ('requested', 'present', 'previous')),
         updated_at timestamptz NOT NULL,
         FOREIGN KEY (agent_id, user_id) REFERENCES agents (id, user_id) ON DELETE CASCADE
       );
       CREATE INDEX agent_credentials_agent ON agent_credentials (agent_id);
       CREATE UNIQUE INDEX agent_credentials_present_key ON agent_credentials (agent_id, name)
         WHERE state = 'present';`,
    );
    const owned = ownedThrough('user_id');
    await protectTable(context, 'agent_credentials', 'SELECT, INSERT, UPDATE, DELETE', owned);
  },

  async down(context) {
    await run(context, 'DROP TABLE agent_credentials;');
  },
};
