import { grantExecute, run, type Migration } from './migration.js';

/**
 * A reservation may hold more than the call that asked for it needs; later calls of its user take
 * their part of it without asking. `reserve_tokens` and `settle_calls` stay for the release before,
 * while it still runs.
 */
export const migration: Migration = {
  async up(context) {
    await run(
      context,
      `ALTER TABLE quota_reservations DROP CONSTRAINT quota_reservations_tokens_check,
         ADD CONSTRAINT quota_reservations_tokens_check CHECK (tokens >= 0);

       -- As reserve_tokens, and holds "extra" as well where a hundred times as much would be left:
       -- what one process has in hand is little of what another one may be refused.
       CREATE FUNCTION hold_tokens(seconds integer, calls jsonb)
         RETURNS TABLE (call uuid, admitted boolean, taken bigint, extra bigint)
         LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
         $$DECLARE
           this_month date := date_trunc('month', now() AT TIME ZONE 'UTC')::date;
           one record;
         BEGIN
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

       -- As settle_calls, and takes what calls held off the reservations they held it by. Those that
       -- are over go back to their users with all that is left of them; so does the one of a call
       -- that names none, which has it to itself.
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
           ), freed AS (
             DELETE FROM public.quota_reservations
              WHERE call_id = ANY (over || ARRAY(SELECT "callId" FROM used WHERE "heldBy" IS NULL))
              RETURNING call_id, user_id, month, tokens
           ), eased AS (
             UPDATE public.quota_reservations r SET tokens = r.tokens - d.tokens
               FROM (SELECT held_by, sum(held) AS tokens
                       FROM drawn WHERE held IS NOT NULL GROUP BY 1) d
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
    await grantExecute(context, 'hold_tokens(integer, jsonb)');
    await grantExecute(context, 'settle_usage(jsonb, uuid[])');
  },

  async down(context) {
    await run(
      context,
      `DROP FUNCTION settle_usage(jsonb, uuid[]);
       DROP FUNCTION hold_tokens(integer, jsonb);
       DELETE FROM quota_reservations WHERE tokens = 0;
       ALTER TABLE quota_reservations DROP CONSTRAINT quota_reservations_tokens_check,
         ADD CONSTRAINT quota_reservations_tokens_check CHECK (tokens > 0);`,
    );
  },
};
