import { ownedThrough } from '../schema/policies.js';
import { grantExecute, protectTable, run, servingRole, type Migration } from './migration.js';

/** Agents and what belongs to one: secrets, operations, memories, the watchdog's, messages. */
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
         volume text,
         previous_release jsonb,
         failed_image text,
         watchdog jsonb,
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
       CREATE INDEX agents_host_present ON agents (host) WHERE deleted_at IS NULL;

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

       CREATE TABLE agent_credentials (
         operation_id text PRIMARY KEY,
         agent_id text NOT NULL,
         user_id text NOT NULL,
         name text NOT NULL,
         sealed text,
         state text NOT NULL CHECK (state IN ('requested', 'present', 'previous')),
         updated_at timestamptz NOT NULL,
         FOREIGN KEY (agent_id, user_id) REFERENCES agents (id, user_id) ON DELETE CASCADE
       );
       CREATE INDEX agent_credentials_agent ON agent_credentials (agent_id);
       CREATE UNIQUE INDEX agent_credentials_present_key ON agent_credentials (agent_id, name)
         WHERE state = 'present';

       CREATE TABLE operations (
         id text PRIMARY KEY,
         agent_id text NOT NULL,
         user_id text NOT NULL,
         kind text NOT NULL, -- which there are, the code's table of operations says
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

       CREATE TABLE agent_archives (
         id text PRIMARY KEY,
         agent_id text NOT NULL,
         user_id text NOT NULL,
         volume text NOT NULL,
         reason text NOT NULL CHECK (reason IN ('reset-memory', 'restore')),
         created_at timestamptz NOT NULL,
         FOREIGN KEY (agent_id, user_id) REFERENCES agents (id, user_id) ON DELETE CASCADE
       );
       CREATE INDEX agent_archives_agent_created ON agent_archives (agent_id, created_at DESC);

       CREATE TABLE watchdog_transitions (
         id text PRIMARY KEY,
         agent_id text NOT NULL,
         user_id text NOT NULL,
         from_state text NOT NULL,
         to_state text NOT NULL CHECK (to_state IN
           ('stopped', 'starting', 'running', 'degraded', 'crash_loop', 'repairing')),
         cause text NOT NULL,
         reason text,
         crash jsonb,
         at timestamptz NOT NULL,
         FOREIGN KEY (agent_id, user_id) REFERENCES agents (id, user_id) ON DELETE CASCADE
       );
       CREATE INDEX watchdog_transitions_agent_at ON watchdog_transitions (agent_id, at DESC);

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
    await protectTable(context, 'agent_credentials', 'SELECT, INSERT, UPDATE, DELETE', owned);
    // A request that its supervisor refused is taken back.
    await protectTable(context, 'operations', 'SELECT, INSERT, UPDATE, DELETE', owned);
    await protectTable(context, 'agent_archives', 'SELECT, INSERT, DELETE', owned);
    const kept = 'SELECT, INSERT, UPDATE (crash), DELETE';
    await protectTable(context, 'watchdog_transitions', kept, owned);
    await protectTable(context, 'messages', 'SELECT, INSERT, UPDATE, DELETE', owned);
    await run(
      context,
      `GRANT USAGE ON SEQUENCE messages_position_seq TO ${servingRole(context)};

       -- Whose a token is, is asked before any user is known: this looks behind the policies, at
       -- these tokens alone, and all that its calls are judged by.
       CREATE FUNCTION find_agent_callers(hashes text[])
         RETURNS TABLE (hash text, agent_id text, model text, ai_provider text, own_model text,
                        user_id text, email text, is_admin boolean, plan text,
                        subscription_active boolean)
         LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
         $$SELECT t.lookup_hash, a.id, a.model, a.ai_provider,
                  CASE WHEN jsonb_typeof(a.config -> 'model') = 'string'
                       THEN a.config ->> 'model' END,
                  u.id, u.email, u.is_admin, s.plan,
                  s.status = 'active' AND (s.period_end IS NULL OR s.period_end > now())
             FROM public.agent_secrets t
             JOIN public.agents a ON a.id = t.agent_id AND a.desired <> 'deleted'
             JOIN public.users u ON u.id = a.user_id
             LEFT JOIN public.subscriptions s ON s.user_id = u.id
            WHERE t.lookup_hash = ANY (hashes) AND t.kind = 'ai-token'$$;`,
    );
    await grantExecute(context, 'find_agent_callers(text[])');
  },

  async down(context) {
    await run(
      context,
      `DROP FUNCTION find_agent_callers(text[]);
       DROP TABLE messages, watchdog_transitions, agent_archives, operations, agent_credentials,
         agent_secrets, agents;`,
    );
  },
};
