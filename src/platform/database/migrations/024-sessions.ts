import { grantExecute, run, servingRole, type Migration } from './migration.js';

/** Sessions that their owners can tell apart and end, and passwords that can be changed. */
export const migration: Migration = {
  async up(context) {
    await run(
      context,
      `ALTER TABLE sessions
         ADD COLUMN id text NOT NULL DEFAULT gen_random_uuid()::text,
         ADD COLUMN method text NOT NULL DEFAULT 'password' CHECK (method IN ('password')),
         ADD COLUMN last_seen_at timestamptz NOT NULL DEFAULT now(),
         ADD COLUMN user_agent text,
         ADD COLUMN address text;
       CREATE UNIQUE INDEX sessions_id_key ON sessions (id);
       GRANT UPDATE (last_seen_at) ON sessions TO ${servingRole(context)};
       GRANT UPDATE (name, password_hash, updated_at) ON users TO ${servingRole(context)};

       -- In place of find_session(), which the release before this one asks.
       CREATE FUNCTION find_web_session(hash text)
         RETURNS TABLE (session_id text, last_seen_at timestamptz, csrf_token text,
                        expires_at timestamptz, id text, name text, email text, is_admin boolean,
                        plan text)
         LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
         $$SELECT s.id, s.last_seen_at, s.csrf_token, s.expires_at, u.id, u.name, u.email, u.is_admin,
                  (SELECT p.plan FROM public.subscriptions p
                    WHERE p.user_id = u.id AND p.status = 'active'
                      AND (p.period_end IS NULL OR p.period_end > now()))
             FROM public.sessions s JOIN public.users u ON u.id = s.user_id
            WHERE s.token_hash = hash AND s.expires_at > now()$$;`,
    );
    await grantExecute(context, 'find_web_session(text)');
  },

  async down(context) {
    await run(
      context,
      `DROP FUNCTION find_web_session(text);
       REVOKE UPDATE (name, password_hash, updated_at) ON users FROM ${servingRole(context)};
       ALTER TABLE sessions
         DROP COLUMN id, DROP COLUMN method, DROP COLUMN last_seen_at, DROP COLUMN user_agent,
         DROP COLUMN address;`,
    );
  },
};
