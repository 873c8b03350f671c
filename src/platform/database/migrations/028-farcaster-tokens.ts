import { PLATFORM } from '../schema/policies.js';
import { newTable } from './migration.js';

/** What is known of those who have proven a Farcaster account: a row for each proof. */
export const migration = newTable(
  'farcaster_tokens',
  `CREATE TABLE farcaster_tokens (
     id text PRIMARY KEY,
     token_hash text NOT NULL,
     fid bigint NOT NULL,
     address text,
     created_at timestamptz NOT NULL,
     expires_at timestamptz NOT NULL,
     ends_at timestamptz NOT NULL
   );
   CREATE INDEX farcaster_tokens_fid ON farcaster_tokens (fid, created_at);
   CREATE INDEX farcaster_tokens_expires_at ON farcaster_tokens (expires_at);`,
  'SELECT, INSERT, UPDATE (token_hash, expires_at), DELETE',
  PLATFORM,
);
