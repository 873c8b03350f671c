import { grantExecute, ownedThrough, protectTable, run, type Migration } from './migration.js';

/** What AI calls used and cost, and the monthly token quotas that bound them. */
export const migration: Migration = {
  async up(context) {
    await run(
      context,
      `-- No reference to users or agents: what was used outlives who used it.
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
         tokens bigint NOT NULL CHECK (tokens > 0),
         expires_at timestamptz NOT NULL
       );
       CREATE INDEX quota_reservations_expires_at ON quota_reservations (expires_at);`,
    );
    const owned = ownedThrough('user_id');
    await protectTable(context, 'usage_logs', 'SELECT', owned);
    await protectTable(context, 'token_quotas', 'SELECT', owned);
    await protectTable(context, 'quota_reservations', 'SELECT', owned);
    await run(
      context,
      `-- Calls of many users are reserved in one round trip, each user's in the order given. Whoever
       -- changes several rows of token_quotas does so in their order, here and below: no deadlock.
       CREATE FUNCTION reserve_tokens(seconds integer, calls jsonb)
         RETURNS TABLE (call uuid, admitted boolean, taken bigint)
         LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
         $$DECLARE
           this_month date := date_trunc('month', now() AT TIME ZONE 'UTC')::date;
           one record;
         BEGIN
           FOR one IN
             SELECT r.* FROM ROWS FROM (jsonb_to_recordset(calls)
                 AS ("callId" uuid, "userId" text, tokens bigint, "limit" bigint))
               WITH ORDINALITY AS r("callId", "userId", tokens, "limit", n)
               ORDER BY r."userId", r.n
           LOOP
             call := one."callId";
             INSERT INTO public.token_quotas AS q (user_id, month, used, held)
               SELECT one."userId", this_month, 0, one.tokens WHERE one.tokens <= one."limit"
               ON CONFLICT (user_id, month) DO UPDATE SET held = q.held + one.tokens
                 WHERE q.used + q.held + one.tokens <= one."limit"
               RETURNING q.used + q.held - one.tokens INTO taken;
             admitted := FOUND;
             IF admitted THEN
               INSERT INTO public.quota_reservations
                 VALUES (call, one."userId", this_month, one.tokens,
                         now() + make_interval(secs => seconds));
             ELSE
               taken := coalesce((SELECT q.used + q.held FROM public.token_quotas q
                 WHERE q.user_id = one."userId" AND q.month = this_month), 0);
             END IF;
             RETURN NEXT;
           END LOOP;
         END$$;

       -- Writes what calls used, once for each call, and gives back what was held for them.
       -- What is only in given_back used nothing. A call counts in the month it was reserved in.
       CREATE FUNCTION settle_calls(rows jsonb, given_back uuid[]) RETURNS void
         LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
         $$WITH used AS (
             SELECT * FROM jsonb_to_recordset(rows) AS r(
               "callId" uuid, "userId" text, "agentId" text, provider text, model text,
               "inputTokens" integer, "outputTokens" integer, "costUsd" numeric,
               endpoint text, at timestamptz)
           ), logged AS (
             INSERT INTO public.usage_logs (call_id, user_id, agent_id, provider, model,
                 input_tokens, output_tokens, cost_usd, endpoint, created_at)
               SELECT * FROM used ON CONFLICT (call_id) DO NOTHING
               RETURNING call_id, user_id, created_at, input_tokens, output_tokens
           ), freed AS (
             DELETE FROM public.quota_reservations
              WHERE call_id = ANY (given_back || ARRAY(SELECT "callId" FROM used))
              RETURNING call_id, user_id, month, tokens
           ), changes AS (
             SELECT l.user_id,
                    coalesce(f.month, date_trunc('month', created_at AT TIME ZONE 'UTC')::date)
                      AS month,
                    input_tokens::bigint + output_tokens AS used, 0 AS held
               FROM logged l LEFT JOIN freed f USING (call_id)
             UNION ALL SELECT user_id, month, 0, -tokens FROM freed
           )
           INSERT INTO public.token_quotas AS q (user_id, month, used, held)
             SELECT user_id, month, sum(used), sum(held) FROM changes GROUP BY 1, 2 ORDER BY 1, 2
             ON CONFLICT (user_id, month)
             DO UPDATE SET used = q.used + excluded.used, held = q.held + excluded.held$$;

       -- Whoever has calls under way says so. What is just being settled needs it no more.
       CREATE FUNCTION keep_reservations(calls uuid[], seconds integer) RETURNS void
         LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
         $$UPDATE public.quota_reservations
              SET expires_at = now() + make_interval(secs => seconds)
            WHERE call_id = ANY (ARRAY(
              SELECT call_id FROM public.quota_reservations
               WHERE call_id = ANY (calls) FOR UPDATE SKIP LOCKED))$$;

       -- What nobody has said so of goes back to its owner.
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
           SELECT count(*)::integer FROM freed$$;`,
    );
    await grantExecute(context, 'reserve_tokens(integer, jsonb)');
    await grantExecute(context, 'settle_calls(jsonb, uuid[])');
    await grantExecute(context, 'keep_reservations(uuid[], integer)');
    await grantExecute(context, 'settle_abandoned(integer)');
  },

  async down(context) {
    await run(
      context,
      `DROP FUNCTION settle_abandoned(integer);
       DROP FUNCTION keep_reservations(uuid[], integer);
       DROP FUNCTION settle_calls(jsonb, uuid[]);
       DROP FUNCTION reserve_tokens(integer, jsonb);
       DROP TABLE quota_reservations, token_quotas, usage_logs;`,
    );
  },
};
