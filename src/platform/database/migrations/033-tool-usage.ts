import { summedThrough } from '../schema/policies.js';
import { grantExecute, protectTable, run, type Migration } from './migration.js';

/** Names of tools on one day of an agent; further ones are summed under one name. */
const MAX_NAMES = 500;

/** Sums of tools' calls by day, which the records of AI calls bring. */
export const migration: Migration = async (context) => {
  await run(
    context,
    `-- No foreign keys to users or agents: usage outlives both.
     CREATE TABLE tool_usage_daily (
       user_id varchar(255) NOT NULL,
       day date NOT NULL,
       agent_id varchar(255) NOT NULL,
       tool varchar(128) NOT NULL,
       calls bigint NOT NULL,
       completed bigint NOT NULL,
       successes bigint NOT NULL,
       ms bigint NOT NULL,
       PRIMARY KEY (user_id, day, agent_id, tool)
     );
     CREATE INDEX tool_usage_daily_day ON tool_usage_daily (day);`,
  );
  await protectTable(context, 'tool_usage_daily', 'SELECT', summedThrough('user_id'));
  await run(
    context,
    `-- Adds the tools of AI calls to their days. Callers choose names of tools, so their number is bounded.
     CREATE FUNCTION add_tool_usage(sums jsonb) RETURNS void
       LANGUAGE sql SET search_path = pg_catalog, pg_temp AS
       $$WITH given AS (
           SELECT user_id, day, agent_id, t.name, sum(t.calls) AS calls, sum(t.completed) AS completed,
                  sum(t.successes) AS successes, sum(t.ms) AS ms
             FROM jsonb_to_recordset(sums) AS s(user_id text, day date, agent_id text, tools jsonb)
            CROSS JOIN LATERAL jsonb_to_recordset(s.tools) AS t(
              name text, calls bigint, completed bigint, successes bigint, ms bigint)
            GROUP BY 1, 2, 3, 4
         ), ranked AS (
           SELECT g.*, d.tool IS NULL AS is_new,
                  count(*) FILTER (WHERE d.tool IS NULL) OVER (
                    PARTITION BY g.user_id, g.day, g.agent_id ORDER BY g.name) AS rank
             FROM given g LEFT JOIN public.tool_usage_daily d
               ON (d.user_id, d.day, d.agent_id, d.tool) = (g.user_id, g.day, g.agent_id, g.name)
         ), named AS (
           SELECT user_id, day, agent_id, calls, completed, successes, ms,
                  CASE WHEN is_new AND rank + (
                         SELECT count(*) FROM public.tool_usage_daily k
                          WHERE (k.user_id, k.day, k.agent_id) = (r.user_id, r.day, r.agent_id)
                       ) > ${MAX_NAMES} THEN '(other)' ELSE name END AS tool
             FROM ranked r
         )
         INSERT INTO public.tool_usage_daily AS d
             (user_id, day, agent_id, tool, calls, completed, successes, ms)
           SELECT user_id, day, agent_id, tool,
                  sum(calls), sum(completed), sum(successes), sum(ms)
             FROM named GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
           ON CONFLICT (user_id, day, agent_id, tool) DO UPDATE SET
             calls = d.calls + excluded.calls,
             completed = d.completed + excluded.completed,
             successes = d.successes + excluded.successes,
             ms = d.ms + excluded.ms$$;

     CREATE FUNCTION remove_old_tool_usage(days integer, most integer) RETURNS integer
       LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
       $$WITH gone AS (
           DELETE FROM public.tool_usage_daily WHERE ctid = ANY (ARRAY(
             SELECT ctid FROM public.tool_usage_daily
              WHERE day < (now() AT TIME ZONE 'UTC')::date - days
              ORDER BY day LIMIT most FOR UPDATE SKIP LOCKED))
           RETURNING 1)
         SELECT count(*)::integer FROM gone$$;
     REVOKE ALL ON FUNCTION add_tool_usage(jsonb) FROM PUBLIC;

     -- As before, and adds the tools of the calls that are logged now.
     CREATE OR REPLACE FUNCTION settle_usage(rows jsonb, over uuid[]) RETURNS void
       LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
       $$WITH used AS (
           SELECT * FROM jsonb_to_recordset(rows) AS r(
             "callId" uuid, "userId" text, "agentId" text, provider text, model text,
             "inputTokens" integer, "outputTokens" integer, "cacheReadTokens" integer,
             "cacheWriteTokens" integer, "costUsd" numeric, "ownKey" boolean,
             endpoint text, at timestamptz, "heldBy" uuid, held bigint, tools jsonb)
         ), logged AS (
           INSERT INTO public.usage_logs (call_id, user_id, agent_id, provider, model,
               input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_usd,
               endpoint, created_at)
             SELECT "callId", "userId", "agentId", provider, model,
                    "inputTokens", "outputTokens", coalesce("cacheReadTokens", 0),
                    coalesce("cacheWriteTokens", 0), "costUsd", endpoint, at
               FROM used ON CONFLICT (call_id) DO NOTHING
             RETURNING call_id, user_id, agent_id, created_at, input_tokens, output_tokens
         ), tools AS (
           SELECT jsonb_agg(jsonb_build_object(
                    'user_id', l.user_id, 'agent_id', coalesce(l.agent_id, ''), 'tools', u.tools,
                    'day', (l.created_at AT TIME ZONE 'UTC')::date)) AS sums
             FROM logged l JOIN LATERAL (
               SELECT tools FROM used WHERE "callId" = l.call_id LIMIT 1) u ON u.tools IS NOT NULL
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
         ), quotas AS (
           INSERT INTO public.token_quotas AS q (user_id, month, used, held)
             SELECT user_id, month, sum(used), sum(held) FROM changes GROUP BY 1, 2 ORDER BY 1, 2
             ON CONFLICT (user_id, month)
             DO UPDATE SET used = q.used + excluded.used, held = q.held + excluded.held
         )
         SELECT public.add_tool_usage(sums) FROM tools WHERE sums IS NOT NULL$$;`,
  );
  await grantExecute(context, ['remove_old_tool_usage(integer, integer)']);
};
