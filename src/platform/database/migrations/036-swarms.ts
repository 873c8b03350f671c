import { ownedThrough } from '../schema/policies.js';
import { protectTable, run, type Migration } from './migration.js';

const TABLES = `
   CREATE TABLE swarms (
     id text PRIMARY KEY,
     user_id text NOT NULL REFERENCES users ON DELETE CASCADE,
     name text NOT NULL,
     task text NOT NULL,
     strategy text NOT NULL CHECK (strategy IN ('parallel', 'sequential')),
     coordinator_id text NOT NULL,
     status text NOT NULL DEFAULT 'pending'
       CHECK (status IN ('pending', 'running', 'completed', 'failed', 'cancelled')),
     -- Each retry is a further round; a member is asked at most once in a round.
     round integer NOT NULL DEFAULT 1,
     -- The coordinator's turn of the round; null before.
     merge text CHECK (merge IN ('running', 'done', 'failed')),
     result text,
     error text,
     -- Messages between agents of the round: reserved on a UTC day, and sent.
     reserved integer NOT NULL DEFAULT 0,
     reserved_on date,
     sent integer NOT NULL DEFAULT 0,
     -- Null as long as a run may have turns in progress.
     settled_at timestamptz,
     due_at timestamptz NOT NULL DEFAULT now(),
     created_at timestamptz NOT NULL DEFAULT now(),
     started_at timestamptz,
     finished_at timestamptz
   );
   CREATE UNIQUE INDEX swarms_id_user ON swarms (id, user_id);
   CREATE INDEX swarms_user_created ON swarms (user_id, created_at, id);
   CREATE INDEX swarms_user_open ON swarms (user_id) WHERE settled_at IS NULL;
   CREATE INDEX swarms_due ON swarms (due_at) WHERE settled_at IS NULL;
   CREATE INDEX swarms_settled ON swarms (settled_at) WHERE settled_at IS NOT NULL;

   CREATE TABLE swarm_members (
     swarm_id text NOT NULL,
     position integer NOT NULL,
     user_id text NOT NULL,
     agent_id text NOT NULL,
     status text NOT NULL DEFAULT 'waiting'
       CHECK (status IN ('waiting', 'running', 'done', 'failed')),
     -- The round in which the member was asked last.
     round integer NOT NULL DEFAULT 0,
     output text,
     error text,
     started_at timestamptz,
     finished_at timestamptz,
     PRIMARY KEY (swarm_id, position),
     FOREIGN KEY (swarm_id, user_id) REFERENCES swarms (id, user_id) ON DELETE CASCADE,
     FOREIGN KEY (agent_id, user_id) REFERENCES agents (id, user_id) ON DELETE CASCADE
   );
   CREATE UNIQUE INDEX swarm_members_agent_key ON swarm_members (swarm_id, agent_id);
   CREATE INDEX swarm_members_agent ON swarm_members (agent_id);
   CREATE INDEX swarm_members_user ON swarm_members (user_id, swarm_id, position);

   CREATE TRIGGER swarms_told AFTER INSERT ON swarms
     FOR EACH STATEMENT EXECUTE FUNCTION tell_of_row();
   -- Of cancellations and retries: their rows are due at once.
   CREATE TRIGGER swarms_changes_told AFTER UPDATE OF status ON swarms
     FOR EACH ROW WHEN (NEW.status IN ('pending', 'cancelled') AND OLD.status <> NEW.status)
     EXECUTE FUNCTION tell_of_row();`;

const owned = ownedThrough('user_id');

/** Swarms: tasks that several agents of one owner work on. */
export const migration: Migration = async (context) => {
  await run(context, TABLES);
  await protectTable(context, 'swarms', 'SELECT, INSERT, UPDATE, DELETE', owned);
  await protectTable(context, 'swarm_members', 'SELECT, INSERT, UPDATE, DELETE', owned);
};
