import { grantExecute, run, servingRole, type Migration } from './migration.js';

/** Whose a host's name is, where its worker is reached, and what operators have decided about it. */
export const migration: Migration = {
  async up(context) {
    await run(
      context,
      `ALTER TABLE hosts
         ADD COLUMN engine_id text,
         ADD COLUMN url text,
         ADD COLUMN cordoned_at timestamptz,
         ADD COLUMN removed_at timestamptz;
       GRANT DELETE ON hosts TO ${servingRole(context)};

       -- Beside host_loads(), for placement in a tenant's transaction: no agent is in it.
       CREATE FUNCTION host_marks()
         RETURNS TABLE (id text, cordoned_at timestamptz, removed_at timestamptz)
         LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
         $$SELECT h.id, h.cordoned_at, h.removed_at FROM public.hosts h$$;`,
    );
    await grantExecute(context, 'host_marks()');
  },

  async down(context) {
    await run(
      context,
      `DROP FUNCTION host_marks();
       REVOKE DELETE ON hosts FROM ${servingRole(context)};
       ALTER TABLE hosts
         DROP COLUMN removed_at, DROP COLUMN cordoned_at, DROP COLUMN url, DROP COLUMN engine_id;`,
    );
  },
};
