import { PLATFORM } from '../schema/policies.js';
import { newTable } from './migration.js';

/** What operators were told of agents, through which channel. */
export const migration = newTable(
  'notifications',
  `-- No reference to agents: what was told outlives whom it was told of.
   CREATE TABLE notifications (
     id text NOT NULL,
     channel text NOT NULL CHECK (channel IN ('telegram', 'discord')),
     agent_id text NOT NULL,
     event text NOT NULL,
     status text NOT NULL CHECK (status IN ('waiting', 'sending', 'sent', 'repeated', 'dropped')),
     created_at timestamptz NOT NULL,
     due_at timestamptz NOT NULL,
     attempted_at timestamptz,
     settled_at timestamptz,
     PRIMARY KEY (id, channel)
   );
   CREATE INDEX notifications_channel_due ON notifications (channel, due_at);
   CREATE INDEX notifications_channel_status ON notifications (channel, status, settled_at);
   CREATE INDEX notifications_agent ON notifications (agent_id, created_at);`,
  'SELECT, INSERT, UPDATE, DELETE',
  PLATFORM,
);
