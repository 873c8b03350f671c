import { summedThrough } from '../schema/policies.js';
import { grantExecute, protectTable, run, type Migration } from './migration.js';

/** Sums of tools' calls, as in `tool_usage_daily`. */
const TOOL_SUMS = ['tool_calls', 'tool_completed', 'tool_successes', 'tool_ms'];

const toolColumns = TOOL_SUMS.map((name) => `${name} bigint NOT NULL`).join(', ');
const addToolColumns = TOOL_SUMS.map((name) => `ADD COLUMN ${name} bigint NOT NULL DEFAULT 0`).join(
  ', ',
);

/** Measurements of agents' containers, usage by hour, and the duration of chats. */
export const migration: Migration = async (context) => {
  await run(
    context,
    `-- One measurement of a container and minute: its work since the reading before.
     CREATE TABLE agent_samples (
       agent_id text NOT NULL,
       at timestamptz NOT NULL,
       user_id text NOT NULL,
       cpu_percent double precision NOT NULL,
       memory_bytes bigint NOT NULL,
       memory_limit_bytes bigint NOT NULL,
       network_in bigint NOT NULL,
       network_out bigint NOT NULL,
       PRIMARY KEY (agent_id, at),
       FOREIGN KEY (agent_id, user_id) REFERENCES agents (id, user_id) ON DELETE CASCADE
     );
     CREATE INDEX agent_samples_at ON agent_samples (at);

     -- Sums of samples by steps of 300, 3,600, 14,400 and 86,400 seconds, so that a series reads no more
     -- rows than it has points. The transaction that stores a sample adds to them. Bytes are exact up to
     -- 2^53, and summed many times faster than as bigint.
     CREATE TABLE agent_sample_sums (
       agent_id text NOT NULL,
       step integer NOT NULL,
       at timestamptz NOT NULL,
       user_id text NOT NULL,
       samples integer NOT NULL,
       cpu_percent double precision NOT NULL,
       memory_bytes double precision NOT NULL,
       network_in double precision NOT NULL,
       network_out double precision NOT NULL,
       PRIMARY KEY (agent_id, step, at),
       FOREIGN KEY (agent_id, user_id) REFERENCES agents (id, user_id) ON DELETE CASCADE
     ) WITH (fillfactor = 80);
     CREATE INDEX agent_sample_sums_at ON agent_sample_sums (step, at);

     -- No foreign keys to users or agents: usage outlives both.
     CREATE TABLE usage_hourly (
       user_id varchar(255) NOT NULL,
       hour timestamptz NOT NULL,
       agent_id varchar(255) NOT NULL,
       calls bigint NOT NULL,
       tokens bigint NOT NULL,
       cost_usd decimal(16,6) NOT NULL,
       ${toolColumns},
       PRIMARY KEY (user_id, hour, agent_id)
     );
     CREATE INDEX usage_hourly_hour ON usage_hourly (hour);

     ALTER TABLE usage_pending ADD COLUMN hour timestamptz, ${addToolColumns};
     ALTER TABLE usage_logs ${addToolColumns};
     ALTER TABLE messages ADD COLUMN took_ms integer;
     CREATE INDEX messages_answers ON messages (agent_id, created_at, status, took_ms)
       WHERE role = 'assistant';
     CREATE INDEX operations_provisions ON operations (user_id, finished_at)
       WHERE kind = 'provision';

     -- Sums that are pending now have no hour: they are among these calls.
     INSERT INTO usage_hourly
       SELECT user_id, date_trunc('hour', created_at, 'UTC'), coalesce(agent_id, ''), count(*),
              sum(input_tokens::bigint + output_tokens), sum(cost_usd), 0, 0, 0, 0
         FROM usage_logs WHERE created_at > now() - interval '100 days' GROUP BY 1, 2, 3;

     CREATE OR REPLACE FUNCTION note_usage() RETURNS trigger
       LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS
       $$BEGIN
         INSERT INTO public.usage_pending (user_id, day, agent_id, provider, model, hour,
             input_tokens, output_tokens, cost_usd, calls,
             tool_calls, tool_completed, tool_successes, tool_ms)
           SELECT user_id, (created_at AT TIME ZONE 'UTC')::date, coalesce(agent_id, ''), provider,
                  model, date_trunc('hour', created_at, 'UTC'),
                  sum(input_tokens), sum(output_tokens), sum(cost_usd), count(*),
                  sum(tool_calls), sum(tool_completed), sum(tool_successes), sum(tool_ms)
             FROM logged GROUP BY 1, 2, 3, 4, 5, 6;
         RETURN NULL;
       END$$;

     -- As before, and adds the sums to their hours.
     CREATE OR REPLACE FUNCTION roll_up_usage(most integer) RETURNS integer
       LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
       $$WITH taken AS (
           DELETE FROM public.usage_pending WHERE id = ANY (ARRAY(
             SELECT id FROM public.usage_pending ORDER BY id LIMIT most FOR UPDATE SKIP LOCKED))
           RETURNING *
         ), added AS (
           INSERT INTO public.usage_daily AS d
             SELECT user_id, day, agent_id, provider, model,
                    sum(input_tokens), sum(output_tokens), sum(cost_usd), sum(calls)
               FROM taken GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5
             ON CONFLICT (user_id, day, agent_id, provider, model) DO UPDATE SET
               input_tokens = d.input_tokens + excluded.input_tokens,
               output_tokens = d.output_tokens + excluded.output_tokens,
               cost_usd = d.cost_usd + excluded.cost_usd,
               calls = d.calls + excluded.calls
         ), added_to_hours AS (
           INSERT INTO public.usage_hourly AS h
             SELECT user_id, hour, agent_id, sum(calls), sum(input_tokens + output_tokens),
                    sum(cost_usd), sum(tool_calls), sum(tool_completed), sum(tool_successes),
                    sum(tool_ms)
               FROM taken WHERE hour IS NOT NULL GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
             ON CONFLICT (user_id, hour, agent_id) DO UPDATE SET
               calls = h.calls + excluded.calls,
               tokens = h.tokens + excluded.tokens,
               cost_usd = h.cost_usd + excluded.cost_usd,
               tool_calls = h.tool_calls + excluded.tool_calls,
               tool_completed = h.tool_completed + excluded.tool_completed,
               tool_successes = h.tool_successes + excluded.tool_successes,
               tool_ms = h.tool_ms + excluded.tool_ms)
         SELECT count(*)::integer FROM taken$$;

     CREATE FUNCTION remove_old_hourly_usage(days integer, most integer) RETURNS integer
       LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
       $$WITH gone AS (
           DELETE FROM public.usage_hourly WHERE ctid = ANY (ARRAY(
             SELECT ctid FROM public.usage_hourly WHERE hour < now() - make_interval(days => days)
              ORDER BY hour LIMIT most FOR UPDATE SKIP LOCKED))
           RETURNING 1)
         SELECT count(*)::integer FROM gone$$;

     -- As before, and logs the sums of a call's tools.
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
               endpoint, created_at, tool_calls, tool_completed, tool_successes, tool_ms)
             SELECT "callId", "userId", "agentId", provider, model,
                    "inputTokens", "outputTokens", coalesce("cacheReadTokens", 0),
                    coalesce("cacheWriteTokens", 0), "costUsd", endpoint, at,
                    coalesce(t.calls, 0), coalesce(t.completed, 0), coalesce(t.successes, 0),
                    coalesce(t.ms, 0)
               FROM used LEFT JOIN LATERAL (
                 SELECT sum(calls) AS calls, sum(completed) AS completed,
                        sum(successes) AS successes, sum(ms) AS ms
                   FROM jsonb_to_recordset(tools) AS s(
                     calls bigint, completed bigint, successes bigint, ms bigint)
               ) t ON tools IS NOT NULL
             ON CONFLICT (call_id) DO NOTHING
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
  const owned = summedThrough('user_id');
  await protectTable(context, 'agent_samples', 'SELECT, INSERT, DELETE', owned);
  await protectTable(
    context,
    'agent_sample_sums',
    'SELECT, INSERT, DELETE, UPDATE (samples, cpu_percent, memory_bytes, network_in, network_out)',
    owned,
  );
  await protectTable(context, 'usage_hourly', 'SELECT', owned);
  await grantExecute(context, ['remove_old_hourly_usage(integer, integer)']);
};
