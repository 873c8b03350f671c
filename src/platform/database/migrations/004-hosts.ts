import { PLATFORM } from '../schema/policies.js';
import { grantExecute, protectTable, run, type Migration } from './migration.js';

/** Docker hosts, recorded by their workers, and the facts about them that placement reads. */
export const migration: Migration = async (context) => {
  await run(
    context,
    `-- Agents have no foreign key to their host, because they outlive its row.
     CREATE TABLE hosts (
       id text PRIMARY KEY CHECK (id ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
       capacity integer NOT NULL CHECK (capacity >= 0),
       first_port integer NOT NULL CHECK (first_port BETWEEN 1 AND 65535),
       last_port integer NOT NULL CHECK (last_port BETWEEN first_port AND 65535),
       engine_available boolean NOT NULL,
       seen_at timestamptz NOT NULL,
       engine_id text,
       url text,
       cordoned_at timestamptz,
       removed_at timestamptz,
       disk_free bigint,
       disk_low boolean NOT NULL DEFAULT false,
       egress text NOT NULL DEFAULT 'unknown',
       egress_reason text,
       egress_refuses boolean NOT NULL DEFAULT false,
       user_namespaces boolean,
       created_at timestamptz NOT NULL,
       updated_at timestamptz NOT NULL
     );`,
  );
  await protectTable(context, 'hosts', 'SELECT, INSERT, UPDATE, DELETE', PLATFORM);

  await run(
    context,
    `-- Placement counts the agents of all users in a tenant's transaction, so this reads behind the
     -- policies, and returns numbers alone. VOLATILE gives each call a new snapshot and the current
     -- time, because the transaction may have waited for its turn.
     CREATE FUNCTION host_loads()
       RETURNS TABLE (id text, capacity integer, agents integer, engine_available boolean,
                      seen_at timestamptz, unseen_seconds double precision)
       LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
       $$SELECT h.id, h.capacity, count(a.id)::integer, h.engine_available, h.seen_at,
                extract(epoch FROM clock_timestamp() - h.seen_at)::double precision
           FROM public.hosts h
           LEFT JOIN public.agents a ON a.host = h.id AND a.deleted_at IS NULL
          GROUP BY h.id ORDER BY h.id$$;

     CREATE FUNCTION host_marks()
       RETURNS TABLE (id text, cordoned_at timestamptz, removed_at timestamptz)
       LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
       $$SELECT h.id, h.cordoned_at, h.removed_at FROM public.hosts h$$;

     CREATE FUNCTION host_disks()
       RETURNS TABLE (id text, disk_low boolean)
       LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
       $$SELECT h.id, h.disk_low FROM public.hosts h$$;

     CREATE FUNCTION host_egress()
       RETURNS TABLE (id text, egress_refuses boolean)
       LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
       $$SELECT h.id, h.egress_refuses FROM public.hosts h$$;`,
  );
  await grantExecute(context, ['host_loads()', 'host_marks()', 'host_disks()', 'host_egress()']);
};
