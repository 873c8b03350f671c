import { grantExecute, ownedThrough, protectTable, run, type Migration } from './migration.js';

/** The keys by which users' programs call the backend. */
export const migration: Migration = {
  async up(context) {
    await run(
      context,
      `CREATE TABLE api_keys (
         id text PRIMARY KEY,
         user_id text NOT NULL REFERENCES users ON DELETE CASCADE,
         name text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 64),
         key_preview text NOT NULL,
         key_hash text NOT NULL,
         lookup_hash text NOT NULL,
         created_at timestamptz NOT NULL,
         last_used timestamptz
       );
       CREATE UNIQUE INDEX api_keys_lookup_hash_key ON api_keys (lookup_hash);
       CREATE INDEX api_keys_user_time ON api_keys (user_id, created_at);`,
    );
    await protectTable(
      context,
      'api_keys',
      'SELECT, INSERT, DELETE, UPDATE (last_used)',
      ownedThrough('user_id'),
    );
    await run(
      context,
      `-- Whose a key is, is asked before any user is known: this looks behind the policies, at
       -- these keys alone. All that calls are judged by comes in one round trip.
       CREATE FUNCTION find_api_keys(hashes text[])
         RETURNS TABLE (hash text, key_id text, user_id text, email text, is_admin boolean, plan text,
                        subscription_active boolean, last_used timestamptz)
         LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
         $$SELECT k.lookup_hash, k.id, u.id, u.email, u.is_admin, s.plan,
                  s.status = 'active' AND (s.period_end IS NULL OR s.period_end > now()),
                  k.last_used
             FROM public.api_keys k
             JOIN public.users u ON u.id = k.user_id
             LEFT JOIN public.subscriptions s ON s.user_id = u.id
            WHERE k.lookup_hash = ANY (hashes)$$;`,
    );
    await grantExecute(context, 'find_api_keys(text[])');
  },

  async down(context) {
    await run(
      context,
      `DROP FUNCTION find_api_keys(text[]);
       DROP TABLE api_keys;`,
    );
  },
};
