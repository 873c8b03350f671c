import { PLATFORM } from '../schema/policies.js';
import { protectTable, run, type Migration } from './migration.js';

const WEBHOOKS = `
   CREATE TABLE provider_webhooks (
     kind text NOT NULL CHECK (kind IN ('video', 'email')),
     id text NOT NULL,
     received_at timestamptz NOT NULL DEFAULT now(),
     PRIMARY KEY (kind, id)
   );
   CREATE INDEX provider_webhooks_received ON provider_webhooks (received_at);`;

/** Events of providers. */
export const migration: Migration = async (context) => {
  await run(context, WEBHOOKS);
  await protectTable(context, 'provider_webhooks', 'SELECT, INSERT, DELETE', PLATFORM);
};
