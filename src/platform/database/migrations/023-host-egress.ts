import { grantExecute, run, type Migration } from './migration.js';

/** Whether the agents of a host are kept to the public internet. */
export const migration: Migration = {
  async up(context) {
    await run(
      context,
      `ALTER TABLE hosts
         ADD COLUMN egress text NOT NULL DEFAULT 'unknown',
         ADD COLUMN egress_reason text,
         ADD COLUMN egress_refuses boolean NOT NULL DEFAULT false;

       -- Beside host_loads(), for placement in a tenant's transaction: no agent is in it.
       CREATE FUNCTION host_egress()
         RETURNS TABLE (id text, egress_refuses boolean)
         LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
         $$SELECT h.id, h.egress_refuses FROM public.hosts h$$;`,
    );
    await grantExecute(context, 'host_egress()');
  },

  async down(context) {
    await run(
      context,
      `DROP FUNCTION host_egress();
       ALTER TABLE hosts DROP COLUMN egress_refuses, DROP COLUMN egress_reason, DROP COLUMN egress;`,
    );
  },
};
