import { ownedThrough } from '../schema/policies.js';
import { newTable } from './migration.js';

/** Measurements of agents, with their evidence and attestation. */
export const migration = newTable(
  'agent_verifications',
  `CREATE TABLE agent_verifications (
     id text PRIMARY KEY,
     agent_id text NOT NULL,
     user_id text NOT NULL,
     -- 'current' is in force; 'past' was; 'cancelled' ended when the agent changed during the measurement.
     state text NOT NULL DEFAULT 'measuring'
       CHECK (state IN ('measuring', 'signing', 'current', 'past', 'cancelled', 'failed')),
     verified boolean,
     checks jsonb,
     -- Id of the image that the agent's container has.
     image text,
     attestation jsonb,
     measured_at timestamptz,
     due_at timestamptz NOT NULL DEFAULT now(),
     created_at timestamptz NOT NULL DEFAULT now(),
     FOREIGN KEY (agent_id, user_id) REFERENCES agents (id, user_id) ON DELETE CASCADE
   );
   CREATE INDEX agent_verifications_agent ON agent_verifications (agent_id);
   CREATE INDEX agent_verifications_user ON agent_verifications (user_id, id);
   CREATE UNIQUE INDEX agent_verifications_current_key ON agent_verifications (agent_id)
     WHERE state = 'current';
   CREATE UNIQUE INDEX agent_verifications_open_key ON agent_verifications (agent_id)
     WHERE state IN ('measuring', 'signing');
   CREATE INDEX agent_verifications_due ON agent_verifications (due_at)
     WHERE state IN ('measuring', 'signing');
   CREATE INDEX agent_verifications_created ON agent_verifications (created_at)
     WHERE state <> 'current';

   CREATE TRIGGER agent_verifications_told AFTER INSERT ON agent_verifications
     FOR EACH STATEMENT EXECUTE FUNCTION tell_of_row();
   CREATE TRIGGER agent_verifications_changes_told AFTER UPDATE OF state ON agent_verifications
     FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION tell_of_row();`,
  'SELECT, INSERT, DELETE, UPDATE (state, verified, checks, image, attestation, measured_at, due_at)',
  ownedThrough('user_id'),
);
