import { grantExecute, run, type Migration } from './migration.js';

const FIND = 'find_paying_sessions(text[])';

/** The look for who pays, many at a time. The one before is the last release's. */
export const migration: Migration = {
  async up(context) {
    await run(
      context,
      `CREATE FUNCTION find_paying_sessions(hashes text[])
         RETURNS TABLE (hash text, id text, address text)
         LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
         $$SELECT s.token_hash, s.id, s.address FROM public.payment_sessions s
            WHERE s.token_hash = ANY (hashes) AND s.opened_at IS NOT NULL$$;`,
    );
    await grantExecute(context, FIND);
  },

  down: (context) => run(context, `DROP FUNCTION ${FIND};`),
};
