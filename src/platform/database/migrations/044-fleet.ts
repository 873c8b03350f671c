import { grantExecute, run, type Migration } from './migration.js';

const INDEXES = `
  CREATE INDEX operations_user_requested ON operations (user_id, requested_at, id);
  CREATE INDEX scheduled_task_runs_user_started ON scheduled_task_runs (user_id, started_at, id);
  CREATE INDEX bus_threads_user_a ON bus_threads (user_a, created_at);
  CREATE INDEX bus_threads_user_b ON bus_threads (user_b, created_at);`;

const IS_SETTLED = `
  -- Reports whether either party has paid a settlement of a negotiation, to the parties alone: each sees
  -- only settlements of its own.
  CREATE FUNCTION booking_is_settled(of_a text, of_b text, of_booking text) RETURNS boolean
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
    $$SELECT EXISTS (
        SELECT FROM public.bus_threads t
         WHERE t.agent_a = of_a AND t.agent_b = of_b AND t.booking_id = of_booking
           AND current_setting('app.user_id', true) IN (t.user_a, t.user_b)
           AND (EXISTS (SELECT FROM public.royalty_splits s
                         WHERE s.user_id = t.user_a AND s.booking_id = t.booking_id
                           AND s.agent_id = t.agent_a AND s.status = 'completed')
             OR EXISTS (SELECT FROM public.royalty_splits s
                         WHERE s.user_id = t.user_b AND s.booking_id = t.booking_id
                           AND s.agent_id = t.agent_b AND s.status = 'completed')))$$;`;

/** Indexes of the lists of a user's work and negotiations, and the settlement of a negotiation. */
export const migration: Migration = async (context) => {
  await run(context, INDEXES);
  await run(context, IS_SETTLED);
  await grantExecute(context, ['booking_is_settled(text, text, text)']);
};
