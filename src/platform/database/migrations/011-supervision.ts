import { ownedThrough } from '../schema/policies.js';
import { newTable } from './migration.js';

/** What operators are still to be told, written down with what it tells of. */
export const migration = newTable(
  'pending_notifications',
  `CREATE TABLE pending_notifications (
     id text PRIMARY KEY,
     agent_id text NOT NULL,
     user_id text NOT NULL,
     event jsonb NOT NULL,
     due_at timestamptz NOT NULL DEFAULT now(),
     FOREIGN KEY (agent_id, user_id) REFERENCES agents (id, user_id) ON DELETE CASCADE
   );
   CREATE INDEX pending_notifications_due ON pending_notifications (due_at);`,
  'SELECT, INSERT, UPDATE, DELETE',
  ownedThrough('user_id'),
);
