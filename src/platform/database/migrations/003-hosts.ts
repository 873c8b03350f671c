import { PLATFORM } from '../schema/policies.js';
import { grantExecute, protectTable, run, type Migration } from './migration.js';

/** The Docker hosts, as their workers write themselves down, and what is placed on each. */
export const migration: Migration = {
  async up(context) {
    await run(
      context,
      `-- Agents do not refer to it: they outlive the row of a host.
       CREATE TABLE hosts (
         id text PRIMARY KEY CHECK (id ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
         capacity integer NOT NULL CHECK (capacity >= 0),
         first_port integer NOT NULL CHECK (first_port BETWEEN 1 AND 65535),
         last_port integer NOT NULL CHECK (last_port BETWEEN first_port AND 65535),
         engine_available boolean NOT NULL,
         seen_at timestamptz NOT NULL,
         created_at timestamptz NOT NULL,
         updated_at timestamptz NOT NULL
       );`,
    );
    await protectTable(context, 'hosts', 'SELECT, INSERT, UPDATE', PLATFORM);
    await run(
      context,
      `-- Placement counts everybody's agents in a tenant's transaction, so this looks behind the
       -- policies: at numbers alone. Every call takes a new snapshot and the time as it is, because
       -- the transaction may have waited for its turn.
       CREATE FUNCTION host_loads()
         RETURNS TABLE (id text, capacity integer, agents integer, engine_available boolean,
                        seen_at timestamptz, unseen_seconds double precision)
         LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
         $$SELECT h.id, h.capacity, count(a.id)::integer, h.engine_available, h.seen_at,
                  extract(epoch FROM clock_timestamp() - h.seen_at)::double precision
             FROM public.hosts h
             LEFT JOIN public.agents a ON a.host = h.id AND a.deleted_at IS NULL
            GROUP BY h.id ORDER BY h.id$$;`,
    );
    await grantExecute(context, 'host_loads()');
  },

  async down(context) {
    await run(
      context,
      `DROP FUNCTION host_loads();
       DROP TABLE hosts;`,
    );
  },
};
