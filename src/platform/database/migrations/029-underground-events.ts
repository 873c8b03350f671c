import { ownedThrough } from '../schema/policies.js';
import { protectTable, run, servingRole, type Migration } from './migration.js';

/** Events that agents hold. */
export const migration: Migration = async (context) => {
  await run(
    context,
    `CREATE TABLE underground_events (
       id bigserial PRIMARY KEY,
       user_id text NOT NULL,
       agent_id text NOT NULL,
       name text NOT NULL,
       description text NOT NULL,
       venue text NOT NULL,
       event_date timestamptz NOT NULL,
       ticket_price_usdc bigint NOT NULL CHECK (ticket_price_usdc >= 0),
       total_tickets integer NOT NULL CHECK (total_tickets > 0),
       created_at timestamptz NOT NULL DEFAULT now(),
       FOREIGN KEY (agent_id, user_id) REFERENCES agents (id, user_id) ON DELETE CASCADE
     );
     CREATE INDEX underground_events_date ON underground_events (event_date, id);
     CREATE INDEX underground_events_user ON underground_events (user_id, event_date, id);
     CREATE INDEX underground_events_agent ON underground_events (agent_id);

     GRANT USAGE ON SEQUENCE underground_events_id_seq TO ${servingRole(context)};`,
  );
  await protectTable(
    context,
    'underground_events',
    'SELECT, INSERT, DELETE',
    ownedThrough('user_id'),
  );
};
