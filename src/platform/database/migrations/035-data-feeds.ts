import { PLATFORM } from '../schema/policies.js';
import { newTable } from './migration.js';

/** Feeds of the operator, each with its last items. */
export const migration = newTable(
  'data_feeds',
  `CREATE TABLE data_feeds (
     id text PRIMARY KEY,
     url text NOT NULL,
     items jsonb NOT NULL DEFAULT '[]',
     etag text,
     last_modified text,
     tried_at timestamptz NOT NULL DEFAULT now(),
     reading_until timestamptz,
     fetched_at timestamptz,
     error text
   );
   CREATE INDEX data_feeds_tried ON data_feeds (tried_at);`,
  'SELECT, INSERT, UPDATE, DELETE',
  PLATFORM,
);
