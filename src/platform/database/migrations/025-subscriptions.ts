import { grantExecute, run, type Migration } from './migration.js';

/**
 * A row for each subscription of the payment processor beside the row of the operator's grant, and one function
 * that returns the subscription that counts.
 */
export const migration: Migration = async (context) => {
  await run(
    context,
    `ALTER TABLE subscriptions DROP CONSTRAINT subscriptions_pkey,
       ADD COLUMN id text NOT NULL DEFAULT gen_random_uuid()::text,
       ADD COLUMN kind text NOT NULL DEFAULT 'plan',
       ADD COLUMN processor_id text,
       ADD COLUMN holds_until timestamptz,
       DROP CONSTRAINT subscriptions_plan_check,
       DROP CONSTRAINT subscriptions_status_check,
       ADD PRIMARY KEY (id),
       ADD CONSTRAINT subscriptions_plan_check CHECK (
         CASE kind WHEN 'plan' THEN plan IN ('label', 'solo', 'collective', 'network')
                   WHEN 'storage' THEN plan IN ('10gb', '50gb', '200gb') ELSE false END),
       ADD CONSTRAINT subscriptions_status_check
         CHECK (status IN ('active', 'past_due', 'cancelled')),
       -- The operator grants plans alone.
       ADD CONSTRAINT subscriptions_source_check CHECK (
         (source = 'processor') = (processor_id IS NOT NULL)
         AND (kind = 'plan' OR processor_id IS NOT NULL));
     CREATE UNIQUE INDEX subscriptions_grant ON subscriptions (user_id) WHERE processor_id IS NULL;
     CREATE UNIQUE INDEX subscriptions_processor_id ON subscriptions (processor_id);
     CREATE INDEX subscriptions_user_id ON subscriptions (user_id);

     -- Returns the highest subscription of a kind that holds, or else the one that ended last. A caller sees
     -- the rows that it may see. Without SET and SECURITY DEFINER, PostgreSQL inlines the function.
     CREATE FUNCTION current_subscription(for_user text, of_kind text)
       RETURNS TABLE (id text, plan text, holds boolean, source text, status text,
                      period_end timestamptz)
       LANGUAGE sql STABLE AS
       $$SELECT s.id, s.plan, s.holds, s.source, s.status, s.period_end
           FROM (SELECT r.*, coalesce(r.holds_until, r.period_end, 'infinity') AS ends,
                        r.status <> 'cancelled'
                          AND coalesce(r.holds_until, r.period_end, 'infinity') > now() AS holds
                   FROM public.subscriptions r
                  WHERE r.user_id = for_user AND r.kind = of_kind) s
          ORDER BY s.holds DESC,
                CASE WHEN s.holds THEN array_position(
                  '{label,solo,collective,network,10gb,50gb,200gb}'::text[], s.plan) END DESC,
                least(s.ends, s.updated_at) DESC
          LIMIT 1$$;

     CREATE OR REPLACE FUNCTION find_signed_in(hash text)
       RETURNS TABLE (session_id text, signed_in_at timestamptz, last_seen_at timestamptz,
                      csrf_token text, expires_at timestamptz, id text, name text, email text,
                      email_verified boolean, is_admin boolean, plan text)
       LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
       $$SELECT s.id, s.created_at, s.last_seen_at, s.csrf_token, s.expires_at,
                u.id, u.name, u.email, u.email_verified_at IS NOT NULL, u.is_admin,
                (SELECT p.plan FROM public.current_subscription(u.id, 'plan') p WHERE p.holds)
           FROM public.sessions s JOIN public.users u ON u.id = s.user_id
          WHERE s.token_hash = hash AND s.expires_at > now()$$;

     CREATE OR REPLACE FUNCTION find_keys(hashes text[])
       RETURNS TABLE (hash text, key_id text, user_id text, name text, email text,
                      email_verified boolean, is_admin boolean, plan text,
                      subscription_active boolean, last_used timestamptz, scopes text[])
       LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
       $$SELECT k.lookup_hash, k.id, u.id, u.name, u.email, u.email_verified_at IS NOT NULL,
                u.is_admin, p.plan, p.holds, k.last_used, k.scopes
           FROM public.api_keys k
           JOIN public.users u ON u.id = k.user_id
           LEFT JOIN LATERAL public.current_subscription(u.id, 'plan') p ON true
          WHERE k.lookup_hash = ANY (hashes) AND k.suspended_at IS NULL$$;

     CREATE OR REPLACE FUNCTION find_calling_agents(hashes text[])
       RETURNS TABLE (hash text, agent_id text, model text, ai_provider text, own_model text,
                      user_id text, email text, email_verified boolean, is_admin boolean,
                      plan text, subscription_active boolean)
       LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
       $$SELECT t.lookup_hash, a.id, a.model, a.ai_provider,
                CASE WHEN jsonb_typeof(a.config -> 'model') = 'string'
                     THEN a.config ->> 'model' END,
                u.id, u.email, u.email_verified_at IS NOT NULL, u.is_admin, p.plan, p.holds
           FROM public.agent_secrets t
           JOIN public.agents a ON a.id = t.agent_id AND a.desired <> 'deleted'
           JOIN public.users u ON u.id = a.user_id
           LEFT JOIN LATERAL public.current_subscription(u.id, 'plan') p ON true
          WHERE t.lookup_hash = ANY (hashes) AND t.kind = 'ai-token'$$;`,
  );
  await grantExecute(context, ['current_subscription(text, text)']);
};
