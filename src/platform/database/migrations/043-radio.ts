import { ownedThrough } from '../schema/policies.js';
import { newTable } from './migration.js';

/** Streams of the radio, and what was measured of their sources. */
export const migration = newTable(
  'radio_streams',
  `CREATE TABLE radio_streams (
     id text PRIMARY KEY,
     user_id text NOT NULL REFERENCES users (id) ON DELETE CASCADE,
     agent_id text,
     title text NOT NULL,
     description text,
     genre text,
     format text NOT NULL CHECK (format IN ('mp3', 'ogg', 'aac')),
     password_hash text NOT NULL,
     peak_listeners integer NOT NULL DEFAULT 0,
     -- Of the source that connected at this time: kbit/s, and the last counts of its bytes.
     source_started_at timestamptz,
     bitrate integer,
     counts jsonb NOT NULL DEFAULT '[]',
     created_at timestamptz NOT NULL DEFAULT now(),
     FOREIGN KEY (agent_id, user_id) REFERENCES agents (id, user_id)
       ON DELETE SET NULL (agent_id)
   );
   CREATE INDEX radio_streams_user_created ON radio_streams (user_id, created_at, id);
   CREATE INDEX radio_streams_agent ON radio_streams (agent_id) WHERE agent_id IS NOT NULL;`,
  `SELECT, INSERT, DELETE,
   UPDATE (password_hash, peak_listeners, source_started_at, bitrate, counts)`,
  ownedThrough('user_id'),
);
