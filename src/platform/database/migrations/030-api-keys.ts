import { grantExecute, run, servingRole, type Migration } from './migration.js';

/** Keys that are found by how they begin, and users as they are judged by: with whether their address is verified. */
export const migration: Migration = {
  async up(context) {
    await run(
      context,
      `ALTER TABLE api_keys ADD COLUMN key_prefix text;
       CREATE INDEX api_keys_key_prefix ON api_keys (key_prefix);
       GRANT UPDATE (key_prefix) ON api_keys TO ${servingRole(context)};

       -- In place of find_api_keys(), find_agent_callers() and find_sign_in(), which the release before
       -- this one asks.
       CREATE FUNCTION find_key_holders(hashes text[])
         RETURNS TABLE (hash text, key_id text, user_id text, name text, email text,
                        email_verified boolean, is_admin boolean, plan text,
                        subscription_active boolean, last_used timestamptz)
         LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
         $$SELECT k.lookup_hash, k.id, u.id, u.name, u.email, u.email_verified_at IS NOT NULL,
                  u.is_admin, s.plan,
                  s.status = 'active' AND (s.period_end IS NULL OR s.period_end > now()),
                  k.last_used
             FROM public.api_keys k
             JOIN public.users u ON u.id = k.user_id
             LEFT JOIN public.subscriptions s ON s.user_id = u.id
            WHERE k.lookup_hash = ANY (hashes)$$;

       -- Keys that begin like this, with what each is compared by; those from before there was a
       -- beginning, by the hash. Of so many random letters hardly two ever begin alike.
       CREATE FUNCTION find_keys_beginning(beginning text, whole text)
         RETURNS TABLE (key_hash text, hash text, key_id text, user_id text, name text, email text,
                        email_verified boolean, is_admin boolean, plan text,
                        subscription_active boolean, last_used timestamptz)
         LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
         $$SELECT k.key_hash, f.*
             FROM (SELECT a.key_hash, a.lookup_hash FROM public.api_keys a WHERE a.key_prefix = beginning
                   UNION ALL
                   SELECT b.key_hash, b.lookup_hash FROM public.api_keys b
                    WHERE b.lookup_hash = whole AND b.key_prefix IS NULL
                   LIMIT 10) k
            CROSS JOIN LATERAL public.find_key_holders(ARRAY[k.lookup_hash]) f$$;

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

       CREATE FUNCTION find_password_holder(address text, from_host text)
         RETURNS TABLE (id text, name text, email text, email_verified boolean, is_admin boolean,
                        password_hash text, known boolean)
         LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
         $$SELECT u.id, u.name, u.email, u.email_verified_at IS NOT NULL, u.is_admin,
                  u.password_hash,
                  EXISTS (SELECT FROM public.sign_in_hosts h
                           WHERE h.user_id = u.id AND h.host = from_host
                             AND h.last_at > now() - interval '90 days')
             FROM public.users u WHERE u.email = address$$;`,
    );
    await grantExecute(context, 'find_key_holders(text[])');
    await grantExecute(context, 'find_keys_beginning(text, text)');
    await grantExecute(context, 'find_calling_agents(text[])');
    await grantExecute(context, 'find_password_holder(text, text)');
  },

  async down(context) {
    await run(
      context,
      `DROP FUNCTION find_password_holder(text, text);
       DROP FUNCTION find_calling_agents(text[]);
       DROP FUNCTION find_keys_beginning(text, text);
       DROP FUNCTION find_key_holders(text[]);
       ALTER TABLE api_keys DROP COLUMN key_prefix;`,
    );
  },
};
