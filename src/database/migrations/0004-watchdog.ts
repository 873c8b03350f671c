import { ownedThrough, protectTable, run, type Migration } from './migration.js';

const KINDS = ['provision', 'start', 'stop', 'restart', 'configure', 'delete'];
const MORE_KINDS = ['update', 'repair', 'reset-memory', 'restore'];

const allowKinds = (kinds: readonly string[]) =>
  `ALTER TABLE operations DROP CONSTRAINT operations_kind_check;
   ALTER TABLE operations ADD CONSTRAINT operations_kind_check
     CHECK (kind IN (${kinds.map((kind) => `'${kind}'`).join(', ')}));`;

/** The watchdog: what it remembers of an agent, and every change of its state. */
export const migration: Migration = {
  async up(context) {
    await run(
      context,
      `ALTER TABLE agents ADD COLUMN watchdog jsonb;
       ${allowKinds([...KINDS, ...MORE_KINDS])}

       CREATE TABLE watchdog_transitions (
         id text PRIMARY KEY,
         agent_id text NOT NULL,
         user_id text NOT NULL,
         from_state text NOT NULL,
         to_state text NOT NULL CHECK (to_state IN
           ('stopped', 'starting', 'running', 'degraded', 'crash_loop', 'repairing')),
         cause text NOT NULL,
         reason text,
         crash jsonb,
         at timestamptz NOT NULL,
         FOREIGN KEY (agent_id, user_id) REFERENCES agents (id, user_id) ON DELETE CASCADE
       );
       CREATE INDEX watchdog_transitions_agent_at ON watchdog_transitions (agent_id, at DESC);`,
    );
    await protectTable(
      context,
      'watchdog_transitions',
      'SELECT, INSERT, UPDATE (crash), DELETE',
      ownedThrough('user_id'),
    );
  },

  async down(context) {
    await run(
      context,
      `DROP TABLE watchdog_transitions;
       DELETE FROM operations WHERE kind NOT IN (${KINDS.map((kind) => `'${kind}'`).join(', ')});
       ${allowKinds(KINDS)}
       ALTER TABLE agents DROP COLUMN watchdog;`,
    );
  },
};
