import { ownedThrough, summedThrough } from '../schema/policies.js';
import { grantExecute, protectTable, removeOldestSql, run, type Migration } from './migration.js';

/** The columns that usage_daily and usage_pending share. */
const SUMS = `
  user_id varchar(255) NOT NULL,
  day date NOT NULL,
  agent_id varchar(255) NOT NULL,
  provider varchar(50) NOT NULL,
  model varchar(100) NOT NULL,
  input_tokens bigint NOT NULL,
  output_tokens bigint NOT NULL,
  cost_usd decimal(16,6) NOT NULL,
  calls integer NOT NULL`;

/** Returns the query that sums rows of usage_logs by user, day (UTC), agent ('' for none) and model. */
const sumsOf = (rows: string) => `
  SELECT user_id, (created_at AT TIME ZONE 'UTC')::date, coalesce(agent_id, ''), provider, model,
         sum(input_tokens), sum(output_tokens), sum(cost_usd), count(*)
    FROM ${rows} GROUP BY 1, 2, 3, 4, 5`;

/** Usage of AI calls with its sums by day, and the monthly token quotas. */
export const migration: Migration = async (context) => {
  await run(
    context,
    `-- No foreign keys to users or agents: usage outlives both.
     CREATE TABLE usage_logs (
       id bigserial PRIMARY KEY,
       call_id uuid NOT NULL,
       user_id varchar(255) NOT NULL,
       agent_id varchar(255),
       provider varchar(50) NOT NULL,
       model varchar(100) NOT NULL,
       input_tokens integer NOT NULL DEFAULT 0 CHECK (input_tokens >= 0),
       output_tokens integer NOT NULL DEFAULT 0 CHECK (output_tokens >= 0),
       cost_usd decimal(10,6) NOT NULL DEFAULT 0 CHECK (cost_usd >= 0),
       endpoint varchar(255) NOT NULL,
       created_at timestamptz NOT NULL
     );
     CREATE UNIQUE INDEX usage_logs_call_id_key ON usage_logs (call_id);
     CREATE INDEX usage_logs_user_time ON usage_logs (user_id, created_at);

     CREATE TABLE token_quotas (
       user_id varchar(255) NOT NULL,
       month date NOT NULL,
       used bigint NOT NULL,
       held bigint NOT NULL,
       PRIMARY KEY (user_id, month)
     );

     CREATE TABLE quota_reservations (
       call_id uuid PRIMARY KEY,
       user_id varchar(255) NOT NULL,
       month date NOT NULL,
       tokens bigint NOT NULL CHECK (tokens >= 0),
       expires_at timestamptz NOT NULL
     );
     CREATE INDEX quota_reservations_expires_at ON quota_reservations (expires_at);

     -- Sums by day, so that a dashboard over a year of calls stays fast.
     CREATE TABLE usage_daily (${SUMS},
       PRIMARY KEY (user_id, day, agent_id, provider, model)
     );
     CREATE INDEX usage_daily_day ON usage_daily (day);
     CREATE INDEX usage_daily_agent_day ON usage_daily (agent_id, day);

     -- Sums that usage_daily lacks. The transaction that logs calls writes them, so late calls need no
     -- comparison of clocks or ids, and transactions do not wait for the one row of a day.
     CREATE TABLE usage_pending (id bigserial PRIMARY KEY, ${SUMS});
     CREATE INDEX usage_pending_user_day ON usage_pending (user_id, day);

     CREATE FUNCTION note_usage() RETURNS trigger
       LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS
       $$BEGIN
         INSERT INTO public.usage_pending (user_id, day, agent_id, provider, model,
             input_tokens, output_tokens, cost_usd, calls) ${sumsOf('logged')};
         RETURN NULL;
       END$$;
     CREATE TRIGGER usage_logs_noted AFTER INSERT ON usage_logs
       REFERENCING NEW TABLE AS logged
       FOR EACH STATEMENT EXECUTE FUNCTION note_usage();`,
  );
  const owned = ownedThrough('user_id');
  await protectTable(context, 'usage_logs', 'SELECT', owned);
  await protectTable(context, 'token_quotas', 'SELECT', owned);
  await protectTable(context, 'quota_reservations', 'SELECT', owned);
  const summed = summedThrough('user_id');
  await protectTable(context, 'usage_daily', 'SELECT', summed);
  await protectTable(context, 'usage_pending', 'SELECT', summed);

  await run(
    context,
    `-- Holds tokens for calls of many users in one round trip, each user's calls in the order given. A
     -- call also holds "extra" tokens for later calls of its user while a hundred times as many stay
     -- free, so that one process keeps only a small part of a quota from another.
     CREATE FUNCTION hold_tokens(seconds integer, calls jsonb)
       RETURNS TABLE (call uuid, admitted boolean, taken bigint, extra bigint)
       LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
       $$DECLARE
         this_month date := date_trunc('month', now() AT TIME ZONE 'UTC')::date;
         one record;
       BEGIN
         -- Lock order, here and below: quota_reservations, then token_quotas, and the rows of each in
         -- the order of their keys, so that no two calls deadlock.
         FOR one IN
           SELECT r.* FROM ROWS FROM (jsonb_to_recordset(calls) AS
               ("callId" uuid, "userId" text, tokens bigint, extra bigint, "limit" bigint))
             WITH ORDINALITY AS r("callId", "userId", tokens, extra, "limit", n)
             ORDER BY r."userId", r.n
         LOOP
           call := one."callId";
           INSERT INTO public.token_quotas (user_id, month, used, held)
             VALUES (one."userId", this_month, 0, 0) ON CONFLICT DO NOTHING;
           SELECT q.used + q.held INTO taken FROM public.token_quotas q
            WHERE q.user_id = one."userId" AND q.month = this_month FOR UPDATE;
           admitted := taken + one.tokens <= one."limit";
           extra := 0;
           IF admitted THEN
             IF one."limit" - taken - one.tokens >= 100 * one.extra THEN
               extra := one.extra;
             END IF;
             UPDATE public.token_quotas q SET held = q.held + one.tokens + hold_tokens.extra
              WHERE q.user_id = one."userId" AND q.month = this_month;
             INSERT INTO public.quota_reservations
               VALUES (call, one."userId", this_month, one.tokens + hold_tokens.extra,
                       now() + make_interval(secs => seconds));
           END IF;
           RETURN NEXT;
         END LOOP;
       END$$;

     -- Logs the usage of calls, once for each call, and takes their held tokens off their reservations.
     -- A reservation in "over", or of a call without "heldBy", is deleted and its rest returned to the
     -- user. A call counts in the month of its reservation.
     CREATE FUNCTION settle_usage(rows jsonb, over uuid[]) RETURNS void
       LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
       $$WITH used AS (
           SELECT * FROM jsonb_to_recordset(rows) AS r(
             "callId" uuid, "userId" text, "agentId" text, provider text, model text,
             "inputTokens" integer, "outputTokens" integer, "costUsd" numeric,
             endpoint text, at timestamptz, "heldBy" uuid, held bigint)
         ), logged AS (
           INSERT INTO public.usage_logs (call_id, user_id, agent_id, provider, model,
               input_tokens, output_tokens, cost_usd, endpoint, created_at)
             SELECT "callId", "userId", "agentId", provider, model,
                    "inputTokens", "outputTokens", "costUsd", endpoint, at
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
           DO UPDATE SET used = q.used + excluded.used, held = q.held + excluded.held$$;

     -- Renews the reservations of calls in flight. SKIP LOCKED leaves out those being settled.
     CREATE FUNCTION keep_reservations(calls uuid[], seconds integer) RETURNS void
       LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
       $$UPDATE public.quota_reservations
            SET expires_at = now() + make_interval(secs => seconds)
          WHERE call_id = ANY (ARRAY(
            SELECT call_id FROM public.quota_reservations
             WHERE call_id = ANY (calls) FOR UPDATE SKIP LOCKED))$$;

     -- Returns the tokens of expired reservations to their users.
     CREATE FUNCTION settle_abandoned(most integer) RETURNS integer
       LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
       $$WITH freed AS (
           DELETE FROM public.quota_reservations WHERE call_id = ANY (ARRAY(
             SELECT call_id FROM public.quota_reservations
              WHERE expires_at < now() ORDER BY expires_at LIMIT most FOR UPDATE SKIP LOCKED))
            RETURNING user_id, month, tokens
         ), given AS (
           INSERT INTO public.token_quotas AS q (user_id, month, used, held)
             SELECT user_id, month, 0, -sum(tokens) FROM freed GROUP BY 1, 2 ORDER BY 1, 2
             ON CONFLICT (user_id, month) DO UPDATE SET held = q.held + excluded.held)
         SELECT count(*)::integer FROM freed$$;

     -- Adds up to "most" pending sums to their days. Each is deleted in the transaction that adds it, and
     -- SKIP LOCKED gives concurrent runs different rows, so each is added exactly once.
     CREATE FUNCTION roll_up_usage(most integer) RETURNS integer
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
               calls = d.calls + excluded.calls)
         SELECT count(*)::integer FROM taken$$;

     ${removeOldestSql('remove_old_usage', 'usage_logs', 'created_at', 35)}`,
  );
  await grantExecute(context, [
    'hold_tokens(integer, jsonb)',
    'settle_usage(jsonb, uuid[])',
    'keep_reservations(uuid[], integer)',
    'settle_abandoned(integer)',
    'roll_up_usage(integer)',
    'remove_old_usage(integer, integer)',
  ]);
};
