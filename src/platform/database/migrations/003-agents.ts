import { ownedThrough } from '../schema/policies.js';
import { grantExecute, protectTable, run, servingRole, type Migration } from './migration.js';

/** Agents and their secrets, operations, volumes, archives, watchdog history, messages and heartbeats. */
export const migration: Migration = async (context) => {
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
     -- Agents being removed are few, and every worker lists them several times a minute.
     CREATE INDEX agents_being_removed ON agents (id)
       WHERE desired = 'deleted' AND deleted_at IS NULL;
     CREATE INDEX agents_deleted ON agents (deleted_at) WHERE deleted_at IS NOT NULL;

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

     -- The kinds are listed in the code's table of operations, so they have no CHECK here.
     CREATE TABLE operations (
       id text PRIMARY KEY,
       agent_id text NOT NULL,
       user_id text NOT NULL,
       kind text NOT NULL,
       status text NOT NULL DEFAULT 'requested'
         CHECK (status IN ('requested', 'running', 'succeeded', 'failed', 'cancelled')),
       input jsonb,
       error text,
       run_id text,
       requested_by text,
       request_id text,
       requested_at timestamptz NOT NULL DEFAULT now(),
       looked_at timestamptz NOT NULL DEFAULT now(),
       admitted_at timestamptz,
       finished_at timestamptz,
       CHECK ((status IN ('requested', 'running')) = (finished_at IS NULL)),
       FOREIGN KEY (agent_id, user_id) REFERENCES agents (id, user_id) ON DELETE CASCADE
     );
     CREATE INDEX operations_agent_requested ON operations (agent_id, requested_at DESC);
     CREATE INDEX operations_open ON operations (looked_at) WHERE finished_at IS NULL;
     CREATE INDEX operations_finished ON operations (finished_at) WHERE kind <> 'provision';

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

     -- A volume that is not named here is never removed from its host.
     CREATE TABLE agent_volumes (
       name text PRIMARY KEY,
       agent_id text NOT NULL,
       user_id text NOT NULL,
       made_by text NOT NULL,
       obsolete boolean NOT NULL DEFAULT false,
       bytes bigint,
       files bigint,
       measured_at timestamptz,
       notified_at timestamptz,
       written_at timestamptz,
       created_at timestamptz NOT NULL,
       FOREIGN KEY (agent_id, user_id) REFERENCES agents (id, user_id) ON DELETE CASCADE
     );
     CREATE INDEX agent_volumes_agent ON agent_volumes (agent_id);

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
     CREATE INDEX watchdog_transitions_at ON watchdog_transitions (at);

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
       ON messages (agent_id, conversation, position);
     CREATE INDEX messages_created ON messages (created_at);

     -- Heartbeat settings, which hold for all agents of a user.
     CREATE TABLE heartbeats (
       user_id text PRIMARY KEY REFERENCES users ON DELETE CASCADE,
       frequency text NOT NULL,
       enabled boolean NOT NULL,
       scheduled boolean NOT NULL,
       last_heartbeat_at timestamptz,
       updated_at timestamptz NOT NULL
     );
     CREATE INDEX heartbeats_unscheduled ON heartbeats (updated_at) WHERE scheduled = false;`,
  );

  const owned = ownedThrough('user_id');
  const every = 'SELECT, INSERT, UPDATE, DELETE';
  // No DELETE on agents: a removed agent stays as a tombstone until remove_old_agents().
  await protectTable(context, 'agents', 'SELECT, INSERT, UPDATE', owned);
  await protectTable(context, 'agent_secrets', every, owned);
  await protectTable(context, 'agent_credentials', every, owned);
  // DELETE takes back a request that its supervisor refused.
  await protectTable(context, 'operations', every, owned);
  await protectTable(context, 'agent_archives', 'SELECT, INSERT, DELETE', owned);
  await protectTable(context, 'agent_volumes', every, owned);
  const kept = 'SELECT, INSERT, UPDATE (crash), DELETE';
  await protectTable(context, 'watchdog_transitions', kept, owned);
  await protectTable(context, 'messages', every, owned);
  await protectTable(context, 'heartbeats', every, owned);

  await run(
    context,
    `GRANT USAGE ON SEQUENCE messages_position_seq TO ${servingRole(context)};

     -- A calling agent is found by its token before its user is known, so this reads behind the
     -- policies, at just these tokens.
     CREATE FUNCTION find_calling_agents(hashes text[])
       RETURNS TABLE (hash text, agent_id text, model text, ai_provider text, own_model text,
                      user_id text, email text, email_verified boolean, is_admin boolean,
                      plan text, subscription_active boolean)
       LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
       $$SELECT t.lookup_hash, a.id, a.model, a.ai_provider,
                CASE WHEN jsonb_typeof(a.config -> 'model') = 'string'
                     THEN a.config ->> 'model' END,
                u.id, u.email, u.email_verified_at IS NOT NULL, u.is_admin, s.plan,
                s.status = 'active' AND (s.period_end IS NULL OR s.period_end > now())
           FROM public.agent_secrets t
           JOIN public.agents a ON a.id = t.agent_id AND a.desired <> 'deleted'
           JOIN public.users u ON u.id = a.user_id
           LEFT JOIN public.subscriptions s ON s.user_id = u.id
          WHERE t.lookup_hash = ANY (hashes) AND t.kind = 'ai-token'$$;

     -- Deletes up to "most" rows of agents removed more than "days" ago, their own rows first, so that no
     -- statement takes long. An agent stays while its host has volumes of it.
     CREATE FUNCTION remove_old_agents(days integer, most integer) RETURNS integer
       LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
       $$DECLARE
         gone text[] := ARRAY(
           SELECT a.id FROM public.agents a
            WHERE a.deleted_at < now() - make_interval(days => greatest(days, 7))
              AND NOT EXISTS (SELECT FROM public.operations o
                               WHERE o.agent_id = a.id AND o.finished_at IS NULL)
              AND NOT EXISTS (SELECT FROM public.agent_volumes v
                                JOIN public.hosts h ON h.id = a.host
                               WHERE v.agent_id = a.id)
            ORDER BY a.deleted_at LIMIT most FOR UPDATE SKIP LOCKED);
         part text;
         done integer;
       BEGIN
         FOREACH part IN ARRAY ARRAY['messages', 'watchdog_transitions', 'operations'] LOOP
           EXECUTE format(
             'DELETE FROM public.%1$I WHERE id = ANY (ARRAY(
                SELECT id FROM public.%1$I WHERE agent_id = ANY ($1) LIMIT $2))', part)
             USING gone, most;
           GET DIAGNOSTICS done = ROW_COUNT;
           IF done > 0 THEN RETURN done; END IF;
         END LOOP;
         DELETE FROM public.agents WHERE id = ANY (gone);
         GET DIAGNOSTICS done = ROW_COUNT;
         RETURN done;
       END$$;`,
  );
  await grantExecute(context, [
    'find_calling_agents(text[])',
    'remove_old_agents(integer, integer)',
  ]);
};
