import { ownedThrough, protectTable, run, servingRole, type Migration } from './migration.js';

/** Agents and what belongs to one: secrets, operations, messages. */
export const migration: Migration = {
  async up(context) {
    await run(
      context,
      `CREATE TABLE agents (
         id text PRIMARY KEY,
         user_id text NOT NULL REFERENCES users ON DELETE RESTRICT,
         name text NOT NULL,
         subdomain text NOT NULL,
         plan text NOT NULL CHECK (plan IN ('label', 'solo', 'collective', 'network')),
         model text NOT NULL,
         ai_provider text NOT NULL,
         config jsonb NOT NULL DEFAULT '{}',
         desired text NOT NULL DEFAULT 'running'
           CHECK (desired IN ('running', 'stopped', 'deleted')),
         status text NOT NULL DEFAULT 'pending'
           CHECK (status IN ('pending', 'active', 'stopped', 'error')),
         status_reason text,
         observed_at timestamptz,
         started_at timestamptz,
         host text NOT NULL DEFAULT 'local',
         port integer CHECK (port BETWEEN 1 AND 65535),
         image text,
         runtime_version text,
         container_id text,
         parent_agent_id text REFERENCES agents ON DELETE SET NULL,
         generation integer NOT NULL DEFAULT 1 CHECK (generation >= 1),
         verified boolean NOT NULL DEFAULT false,
         verification_type text,
         attestation_uid text,
         verified_at timestamptz,
         created_at timestamptz NOT NULL,
         updated_at timestamptz NOT NULL,
         deleted_at timestamptz CHECK (deleted_at IS NULL OR desired = 'deleted')
       );
       CREATE UNIQUE INDEX agents_host_port_key ON agents (host, port) WHERE port IS NOT NULL;
       CREATE UNIQUE INDEX agents_user_name_key ON agents (user_id, name)
         WHERE desired <> 'deleted';
       CREATE UNIQUE INDEX agents_subdomain_key ON agents (subdomain) WHERE deleted_at IS NULL;
       CREATE UNIQUE INDEX agents_id_user_key ON agents (id, user_id);
       CREATE INDEX agents_user_created ON agents (user_id, created_at, id);
       CREATE INDEX agents_parent ON agents (parent_agent_id);

       CREATE TABLE agent_secrets (
         agent_id text NOT NULL,
         kind text NOT NULL CHECK (kind IN ('gateway-token', 'ai-token')),
         user_id text NOT NULL,
         sealed text NOT NULL,
         lookup_hash text,
         PRIMARY KEY (agent_id, kind),
         FOREIGN KEY (agent_id, user_id) REFERENCES agents (id, user_id) ON DELETE CASCADE
       );
       CREATE UNIQUE INDEX agent_secrets_lookup_key ON agent_secrets (lookup_hash);

       CREATE TABLE operations (
         id text PRIMARY KEY,
         agent_id text NOT NULL,
         user_id text NOT NULL,
         kind text NOT NULL CHECK
           (kind IN ('provision', 'start', 'stop', 'restart', 'configure', 'delete')),
         status text NOT NULL DEFAULT 'requested'
           CHECK (status IN ('requested', 'running', 'succeeded', 'failed', 'cancelled')),
         input jsonb,
         error text,
         run_id text,
         requested_at timestamptz NOT NULL,
         finished_at timestamptz,
         CHECK ((status IN ('requested', 'running')) = (finished_at IS NULL)),
         FOREIGN KEY (agent_id, user_id) REFERENCES agents (id, user_id) ON DELETE CASCADE
       );
       CREATE INDEX operations_agent_requested ON operations (agent_id, requested_at DESC);

       CREATE TABLE messages (
         id text PRIMARY KEY,
         agent_id text NOT NULL,
         user_id text NOT NULL,
         conversation text NOT NULL,
         role text NOT NULL CHECK (role IN ('user', 'assistant')),
         content text NOT NULL,
         status text NOT NULL DEFAULT 'complete' CHECK (status IN ('complete', 'failed')),
         position bigserial NOT NULL,
         created_at timestamptz NOT NULL,
         FOREIGN KEY (agent_id, user_id) REFERENCES agents (id, user_id) ON DELETE CASCADE
       );
       CREATE INDEX messages_conversation_position
         ON messages (agent_id, conversation, position);`,
    );

    const owned = ownedThrough('user_id');
    // No DELETE on agents: a removed one stays as a tombstone.
    await protectTable(context, 'agents', 'SELECT, INSERT, UPDATE', owned);
    await protectTable(context, 'agent_secrets', 'SELECT, INSERT, UPDATE, DELETE', owned);
    // A request that its supervisor refused is taken back.
    await protectTable(context, 'operations', 'SELECT, INSERT, UPDATE, DELETE', owned);
    await protectTable(context, 'messages', 'SELECT, INSERT, UPDATE, DELETE', owned);
    await run(context, `GRANT USAGE ON SEQUENCE messages_position_seq TO ${servingRole(context)};`);
  },

  async down(context) {
    await run(context, 'DROP TABLE messages, operations, agent_secrets, agents;');
  },
};
