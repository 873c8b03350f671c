import { ownedThrough } from '../schema/policies.js';
import { protectTable, run, type Migration } from './migration.js';

/** The volumes that operations have made: what is not named here is never removed. */
export const migration: Migration = {
  async up(context) {
    await run(
      context,
      `CREATE TABLE agent_volumes (
         name text PRIMARY KEY,
         agent_id text NOT NULL,
         user_id text NOT NULL,
         made_by text NOT NULL,
         obsolete boolean NOT NULL DEFAULT false,
         created_at timestamptz NOT NULL,
         FOREIGN KEY (agent_id, user_id) REFERENCES agents (id, user_id) ON DELETE CASCADE
       );
       CREATE INDEX agent_volumes_agent ON agent_volumes (agent_id);

       -- Volumes from before say nothing of what has made them.
       INSERT INTO agent_volumes (name, agent_id, user_id, made_by, created_at)
         SELECT coalesce(volume, 'agent-' || id), id, user_id, '', created_at FROM agents
         UNION
         SELECT coalesce(previous_release ->> 'volume', 'agent-' || id), id, user_id, '', created_at
           FROM agents WHERE previous_release IS NOT NULL
         UNION
         SELECT volume, agent_id, user_id, '', created_at FROM agent_archives
         ON CONFLICT DO NOTHING;`,
    );
    const owned = ownedThrough('user_id');
    await protectTable(context, 'agent_volumes', 'SELECT, INSERT, UPDATE, DELETE', owned);
  },

  async down(context) {
    await run(context, 'DROP TABLE agent_volumes;');
  },
};
