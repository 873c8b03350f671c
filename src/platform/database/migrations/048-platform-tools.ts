import { run, type Migration } from './migration.js';

/** Records of the platform's own tools, whose provider is `hostmcp`, are no calls of AI. */
export const migration: Migration = (context) =>
  run(
    context,
    `-- As before for calls of AI. Calls of the platform's tools are in no daily sum of AI: their hours have them.
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
             FROM logged WHERE provider <> 'hostmcp' GROUP BY 1, 2, 3, 4, 5, 6;
         INSERT INTO public.usage_hourly AS h (user_id, hour, agent_id, calls, tokens, cost_usd,
             tool_calls, tool_completed, tool_successes, tool_ms)
           SELECT user_id, date_trunc('hour', created_at, 'UTC'), coalesce(agent_id, ''), 0, 0, 0,
                  sum(tool_calls), sum(tool_completed), sum(tool_successes), sum(tool_ms)
             FROM logged WHERE provider = 'hostmcp' GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
           ON CONFLICT (user_id, hour, agent_id) DO UPDATE SET
             tool_calls = h.tool_calls + excluded.tool_calls,
             tool_completed = h.tool_completed + excluded.tool_completed,
             tool_successes = h.tool_successes + excluded.tool_successes,
             tool_ms = h.tool_ms + excluded.tool_ms;
         RETURN NULL;
       END$$;`,
  );
