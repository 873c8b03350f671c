import { PLATFORM } from '../schema/policies.js';
import { grantExecute, protectTable, run, type Migration } from './migration.js';

/** Links by which whom ADMIN_EMAILS names becomes an admin, once and for a while. */
export const migration: Migration = {
  async up(context) {
    await run(
      context,
      `CREATE TABLE admin_links (
         email text PRIMARY KEY,
         token_hash text NOT NULL,
         expires_at timestamptz NOT NULL
       );

       -- The one way to change who is an admin: the serving role may not.
       CREATE FUNCTION use_admin_link(for_user text, hash text) RETURNS boolean
         LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
         $$WITH used AS (
             DELETE FROM public.admin_links l USING public.users u
              WHERE u.id = for_user AND l.email = u.email AND l.token_hash = hash
                AND l.expires_at > now()
              RETURNING u.id)
           UPDATE public.users SET is_admin = true, updated_at = now()
            WHERE id IN (SELECT id FROM used) RETURNING true$$;`,
    );
    await protectTable(context, 'admin_links', 'SELECT, INSERT, UPDATE, DELETE', PLATFORM);
    await grantExecute(context, 'use_admin_link(text, text)');
  },

  async down(context) {
    await run(context, 'DROP FUNCTION use_admin_link(text, text); DROP TABLE admin_links;');
  },
};
