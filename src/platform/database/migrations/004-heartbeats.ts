import { ownedThrough } from '../schema/policies.js';
import { newTable } from './migration.js';

/** How often each user's running agents are asked whether there is anything to do. */
export const migration = newTable(
  'heartbeats',
  `CREATE TABLE heartbeats (
     user_id text PRIMARY KEY REFERENCES users ON DELETE CASCADE,
     frequency text NOT NULL,
     enabled boolean NOT NULL,
     scheduled boolean NOT NULL,
     last_heartbeat_at timestamptz,
     updated_at timestamptz NOT NULL
   );
   CREATE INDEX heartbeats_unscheduled ON heartbeats (updated_at) WHERE scheduled = false;`,
  'SELECT, INSERT, UPDATE, DELETE',
  ownedThrough('user_id'),
);
