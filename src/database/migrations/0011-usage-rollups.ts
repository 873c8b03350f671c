import { grantExecute, protectTable, run, type Migration } from './migration.js';

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

/**
 * As other tables' policies, but the settings are asked for once a statement, not for each of the
 * many rows that a report adds up; and the planner counts on many, so that it does not sort them.
 */
const OWNED = `user_id = (SELECT current_setting('app.user_id', true))
  OR (SELECT current_setting('app.platform', true)) = 'on'`;

/** Sums of rows of usage_logs by user, day (UTC), agent ('' for none), provider and model. */
const summed = (rows: string) => `
  SELECT user_id, (created_at AT TIME ZONE 'UTC')::date, coalesce(agent_id, ''), provider, model,
         sum(input_tokens), sum(output_tokens), sum(cost_usd), count(*)
    FROM ${rows} GROUP BY 1, 2, 3, 4, 5`;

/** What was used a day, kept so that a dashboard over a year of calls stays fast. */
export const migration: Migration = {
  async up(context) {
    await run(
      context,
      `CREATE TABLE usage_daily (${SUMS},
         PRIMARY KEY (user_id, day, agent_id, provider, model)
       );
       CREATE INDEX usage_daily_day ON usage_daily (day);
       CREATE INDEX usage_daily_agent_day ON usage_daily (agent_id, day);

       -- What usage_daily does not have yet. Written by the transaction that logs the calls, so it
       -- knows of late ones without comparing clocks or ids, and nobody waits for a day's one row.
       CREATE TABLE usage_pending (id bigserial PRIMARY KEY, ${SUMS});
       CREATE INDEX usage_pending_user_day ON usage_pending (user_id, day);

       CREATE FUNCTION note_usage() RETURNS trigger
         LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS
         $$BEGIN
           INSERT INTO public.usage_pending (user_id, day, agent_id, provider, model,
               input_tokens, output_tokens, cost_usd, calls) ${summed('logged')};
           RETURN NULL;
         END$$;
       CREATE TRIGGER usage_logs_noted AFTER INSERT ON usage_logs
         REFERENCING NEW TABLE AS logged
         FOR EACH STATEMENT EXECUTE FUNCTION note_usage();

       -- Making the trigger has waited for whoever was writing, so nothing is missed between them.
       INSERT INTO usage_daily ${summed('usage_logs')};`,
    );
    await protectTable(context, 'usage_daily', 'SELECT', OWNED);
    await protectTable(context, 'usage_pending', 'SELECT', OWNED);
    await run(
      context,
      `-- Adds up to so many pending sums to their days, each exactly once: it is gone with the
       -- transaction that has added it. Two at a time take different ones.
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
           SELECT count(*)::integer FROM taken$$;`,
    );
    await grantExecute(context, 'roll_up_usage(integer)');
  },

  async down(context) {
    await run(
      context,
      `DROP FUNCTION roll_up_usage(integer);
       DROP TRIGGER usage_logs_noted ON usage_logs;
       DROP FUNCTION note_usage();
       DROP TABLE usage_pending, usage_daily;`,
    );
  },
};
