import { ownedThrough } from '../schema/policies.js';
import { grantExecute, protectTable, run, type Migration } from './migration.js';

/** The sealed keys by provider; null without any. */
const OWN_KEYS = `(SELECT jsonb_object_agg(o.provider, o.sealed_key) FROM public.provider_keys o
                    WHERE o.user_id = u.id AND o.suspended_at IS NULL)`;

/** Lookups that every request with a key or an agent's token waits for. */
const LOOKUPS = [
  ...['find_keys(text[])', 'find_calling_agents(text[])'],
  ...['find_key_callers(text[])', 'find_agent_callers(text[])'],
];

/** Users' own keys of AI providers, found with the caller whose calls they serve. */
export const migration: Migration = async (context) => {
  await run(
    context,
    `CREATE TABLE provider_keys (
       user_id text NOT NULL REFERENCES users ON DELETE CASCADE,
       provider text NOT NULL,
       sealed_key text NOT NULL,
       added_by text,
       suspended_at timestamptz,
       created_at timestamptz NOT NULL,
       PRIMARY KEY (user_id, provider)
     );
     CREATE TRIGGER provider_keys_need_account AFTER INSERT ON provider_keys
       FOR EACH ROW EXECUTE FUNCTION refuse_without_account();`,
  );
  const every = 'SELECT, INSERT, UPDATE, DELETE';
  await protectTable(context, 'provider_keys', every, ownedThrough('user_id'));
  await run(
    context,
    `-- The running release calls find_keys() and find_calling_agents() until it is replaced. Its prepared
     -- statements would fail if these functions returned another column.
     CREATE FUNCTION find_key_callers(hashes text[])
       RETURNS TABLE (hash text, key_id text, user_id text, name text, email text,
                      email_verified boolean, is_admin boolean, plan text,
                      subscription_active boolean, last_used timestamptz, scopes text[],
                      own_keys jsonb)
       LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
       $$SELECT k.lookup_hash, k.id, u.id, u.name, u.email, u.email_verified_at IS NOT NULL,
                u.is_admin, p.plan, p.holds, k.last_used, k.scopes, ${OWN_KEYS}
           FROM public.api_keys k
           JOIN public.users u ON u.id = k.user_id
           LEFT JOIN LATERAL public.current_subscription(u.id, 'plan') p ON true
          WHERE k.lookup_hash = ANY (hashes) AND k.suspended_at IS NULL$$;

     CREATE FUNCTION find_agent_callers(hashes text[])
       RETURNS TABLE (hash text, agent_id text, model text, ai_provider text, own_model text,
                      user_id text, email text, email_verified boolean, is_admin boolean,
                      plan text, subscription_active boolean, own_keys jsonb)
       LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
       $$SELECT t.lookup_hash, a.id, a.model, a.ai_provider,
                CASE WHEN jsonb_typeof(a.config -> 'model') = 'string'
                     THEN a.config ->> 'model' END,
                u.id, u.email, u.email_verified_at IS NOT NULL, u.is_admin, p.plan, p.holds,
                ${OWN_KEYS}
           FROM public.agent_secrets t
           JOIN public.agents a ON a.id = t.agent_id AND a.desired <> 'deleted'
           JOIN public.users u ON u.id = a.user_id
           LEFT JOIN LATERAL public.current_subscription(u.id, 'plan') p ON true
          WHERE t.lookup_hash = ANY (hashes) AND t.kind = 'ai-token'$$;

     -- A call by the caller's own key (ownKey) is logged, and counts against no quota.
     CREATE OR REPLACE FUNCTION settle_usage(rows jsonb, over uuid[]) RETURNS void
       LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
       $$WITH used AS (
           SELECT * FROM jsonb_to_recordset(rows) AS r(
             "callId" uuid, "userId" text, "agentId" text, provider text, model text,
             "inputTokens" integer, "outputTokens" integer, "cacheReadTokens" integer,
             "cacheWriteTokens" integer, "costUsd" numeric, "ownKey" boolean,
             endpoint text, at timestamptz, "heldBy" uuid, held bigint)
         ), logged AS (
           INSERT INTO public.usage_logs (call_id, user_id, agent_id, provider, model,
               input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_usd,
               endpoint, created_at)
             SELECT "callId", "userId", "agentId", provider, model,
                    "inputTokens", "outputTokens", coalesce("cacheReadTokens", 0),
                    coalesce("cacheWriteTokens", 0), "costUsd", endpoint, at
               FROM used ON CONFLICT (call_id) DO NOTHING
             RETURNING call_id, user_id, created_at, input_tokens, output_tokens
         ), drawn AS (
           SELECT DISTINCT l.*, coalesce(u."ownKey", false) AS own_key,
                  coalesce(u."heldBy", u."callId") AS held_by, u.held
             FROM logged l JOIN used u ON u."callId" = l.call_id
         ), locked AS MATERIALIZED (
           SELECT call_id FROM public.quota_reservations
            WHERE call_id = ANY (over || ARRAY(SELECT coalesce("heldBy", "callId") FROM used))
            ORDER BY call_id FOR UPDATE
         ), freed AS (
           DELETE FROM public.quota_reservations WHERE call_id IN (
             SELECT call_id FROM locked
              WHERE call_id = ANY (over)
                 OR call_id IN (SELECT "callId" FROM used WHERE "heldBy" IS NULL))
            RETURNING call_id, user_id, month, tokens
         ), eased AS (
           UPDATE public.quota_reservations r SET tokens = r.tokens - d.tokens
             FROM (SELECT held_by, sum(held) AS tokens
                     FROM drawn WHERE held IS NOT NULL GROUP BY 1) d
             JOIN locked l ON l.call_id = d.held_by
            WHERE r.call_id = d.held_by AND r.call_id <> ALL (over)
            RETURNING r.call_id, r.user_id, r.month, d.tokens
         ), settled AS (
           SELECT * FROM freed UNION ALL SELECT * FROM eased
         ), changes AS (
           SELECT d.user_id,
                  coalesce(s.month, date_trunc('month', d.created_at AT TIME ZONE 'UTC')::date)
                    AS month,
                  d.input_tokens::bigint + d.output_tokens AS used, 0 AS held
             FROM drawn d LEFT JOIN settled s ON s.call_id = d.held_by
            WHERE NOT d.own_key
           UNION ALL SELECT user_id, month, 0, -tokens FROM settled
         )
         INSERT INTO public.token_quotas AS q (user_id, month, used, held)
           SELECT user_id, month, sum(used), sum(held) FROM changes GROUP BY 1, 2 ORDER BY 1, 2
           ON CONFLICT (user_id, month)
           DO UPDATE SET used = q.used + excluded.used, held = q.held + excluded.held$$;`,
  );
  await grantExecute(context, ['find_key_callers(text[])', 'find_agent_callers(text[])']);
  for (const lookup of LOOKUPS) {
    // Planning takes longer than the lookup, so each connection plans once. A plan that was made while the
    // tables were empty must use their indexes, too.
    await run(
      context,
      `ALTER FUNCTION ${lookup} SET enable_seqscan = off;
       ALTER FUNCTION ${lookup} SET enable_hashjoin = off;
       ALTER FUNCTION ${lookup} SET enable_mergejoin = off;
       ALTER FUNCTION ${lookup} SET plan_cache_mode = force_generic_plan;`,
    );
  }
};
