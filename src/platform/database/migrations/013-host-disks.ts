import { grantExecute, run, type Migration } from './migration.js';

/** What is free of the disk that a host's engine keeps its volumes on. */
export const migration: Migration = {
  async up(context) {
    await run(
      context,
      `ALTER TABLE hosts
         ADD COLUMN disk_free bigint,
         ADD COLUMN disk_low boolean NOT NULL DEFAULT false;

       -- Beside host_loads(), for placement in a tenant's transaction: no agent is in it.
       CREATE FUNCTION host_disks()
         RETURNS TABLE (id text, disk_low boolean)
         LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
         $$SELECT h.id, h.disk_low FROM public.hosts h$$;`,
    );
    await grantExecute(context, 'host_disks()');
  },

  async down(context) {
    await run(
      context,
      `DROP FUNCTION host_disks();
       ALTER TABLE hosts DROP COLUMN disk_low, DROP COLUMN disk_free;`,
    );
  },
};
