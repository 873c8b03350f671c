import { ownedThrough } from '../schema/policies.js';
import { protectTable, run, type Migration } from './migration.js';

/** Agents that are made as copies of others, and the payments for them. */
export const migration: Migration = async (context) => {
  await run(
    context,
    `-- A payment counts for one clone for good, so a claim outlives the clone and its owner's account.
     CREATE TABLE payment_claims (
       chain_id bigint NOT NULL,
       hash text NOT NULL CHECK (hash ~ '^0x[0-9a-f]{64}$'),
       clone_id text NOT NULL,
       user_id text NOT NULL,
       claimed_at timestamptz NOT NULL DEFAULT now(),
       PRIMARY KEY (chain_id, hash)
     );

     CREATE TABLE clones (
       id text PRIMARY KEY,
       user_id text NOT NULL,
       parent_agent_id text NOT NULL,
       specialization text NOT NULL CHECK (specialization IN
         ('general', 'ar', 'promo', 'booking', 'support', 'analytics')),
       chain_id bigint NOT NULL,
       hash text NOT NULL,
       payer text NOT NULL,
       amount bigint NOT NULL CHECK (amount > 0),
       block bigint NOT NULL,
       state text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'handed-over', 'failed')),
       paid_at timestamptz,
       memory_made_by text,
       requested_by text NOT NULL,
       request_id text NOT NULL,
       due_at timestamptz NOT NULL DEFAULT now(),
       created_at timestamptz NOT NULL DEFAULT now(),
       FOREIGN KEY (id, user_id) REFERENCES agents (id, user_id) ON DELETE CASCADE
     );
     CREATE UNIQUE INDEX clones_payment_key ON clones (chain_id, hash);
     CREATE INDEX clones_waiting ON clones (due_at) WHERE state = 'waiting';`,
  );
  const owned = ownedThrough('user_id');
  await protectTable(context, 'payment_claims', 'SELECT, INSERT', owned);
  await protectTable(context, 'clones', 'SELECT, INSERT, UPDATE', owned);
};
