import { PLATFORM } from '../schema/policies.js';
import { newTable } from './migration.js';

/** Nonces that wallets have signed in with, until they would have ended. */
export const migration = newTable(
  'used_nonces',
  `CREATE TABLE used_nonces (
     id text PRIMARY KEY,
     expires_at timestamptz NOT NULL
   );
   CREATE INDEX used_nonces_expires_at ON used_nonces (expires_at);`,
  'SELECT, INSERT, UPDATE (expires_at), DELETE',
  PLATFORM,
);
