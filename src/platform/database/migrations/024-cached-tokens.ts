import { run, type Migration } from './migration.js';

/** Tokens of each call that came from a provider's prompt cache, or were written to it. */
export const migration: Migration = async (context) => {
  await run(
    context,
    `-- Both are part of input_tokens. Records of an older release lack them.
     ALTER TABLE usage_logs
       ADD COLUMN cache_read_tokens integer NOT NULL DEFAULT 0,
       ADD COLUMN cache_write_tokens integer NOT NULL DEFAULT 0,
       ADD CONSTRAINT usage_logs_cache_check CHECK (
         cache_read_tokens >= 0 AND cache_write_tokens >= 0
         AND cache_read_tokens + cache_write_tokens <= input_tokens);

     CREATE OR REPLACE FUNCTION settle_usage(rows jsonb, over uuid[]) RETURNS void
       LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
       $$WITH used AS (
           SELECT * FROM jsonb_to_recordset(rows) AS r(
             "callId" uuid, "userId" text, "agentId" text, provider text, model text,
             "inputTokens" integer, "outputTokens" integer, "cacheReadTokens" integer,
             "cacheWriteTokens" integer, "costUsd" numeric,
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
           SELECT DISTINCT l.*, coalesce(u."heldBy", u."callId") AS held_by, u.held
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
           UNION ALL SELECT user_id, month, 0, -tokens FROM settled
         )
         INSERT INTO public.token_quotas AS q (user_id, month, used, held)
           SELECT user_id, month, sum(used), sum(held) FROM changes GROUP BY 1, 2 ORDER BY 1, 2
           ON CONFLICT (user_id, month)
           DO UPDATE SET used = q.used + excluded.used, held = q.held + excluded.held$$;`,
  );
};
