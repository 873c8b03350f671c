import { ownedThrough } from '../schema/policies.js';
import { grantExecute, protectTable, run, servingRole, type Migration } from './migration.js';

/** Identities that others vouch for, sessions made by them, and addresses that are verified. */
export const migration: Migration = {
  async up(context) {
    await run(
      context,
      `CREATE TABLE identities (
         id text PRIMARY KEY,
         user_id text NOT NULL REFERENCES users ON DELETE CASCADE,
         kind text NOT NULL CHECK (kind IN ('google', 'github', 'wallet', 'farcaster')),
         issuer text NOT NULL,
         subject text NOT NULL CHECK (subject <> ''),
         label text NOT NULL,
         refresh_token text,
         disabled_at timestamptz,
         created_at timestamptz NOT NULL,
         last_used_at timestamptz
       );
       CREATE UNIQUE INDEX identities_subject_key ON identities (kind, issuer, subject);
       CREATE INDEX identities_user_id ON identities (user_id);

       ALTER TABLE users
         ADD COLUMN email_verified_at timestamptz,
         ADD COLUMN pending_email text CHECK (pending_email = lower(pending_email COLLATE "C"));
       GRANT UPDATE (email_verified_at, pending_email) ON users TO ${servingRole(context)};

       ALTER TABLE sessions
         DROP CONSTRAINT sessions_method_check,
         ADD CONSTRAINT sessions_method_check
           CHECK (method IN ('password', 'google', 'github', 'wallet'));

       -- In place of find_web_session(), which the release before this one asks.
       CREATE FUNCTION find_signed_in(hash text)
         RETURNS TABLE (session_id text, signed_in_at timestamptz, last_seen_at timestamptz,
                        csrf_token text, expires_at timestamptz, id text, name text, email text,
                        email_verified boolean, is_admin boolean, plan text)
         LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
         $$SELECT s.id, s.created_at, s.last_seen_at, s.csrf_token, s.expires_at,
                  u.id, u.name, u.email, u.email_verified_at IS NOT NULL, u.is_admin,
                  (SELECT p.plan FROM public.subscriptions p
                    WHERE p.user_id = u.id AND p.status = 'active'
                      AND (p.period_end IS NULL OR p.period_end > now()))
             FROM public.sessions s JOIN public.users u ON u.id = s.user_id
            WHERE s.token_hash = hash AND s.expires_at > now()$$;`,
    );
    await protectTable(
      context,
      'identities',
      'SELECT, INSERT, DELETE, UPDATE (label, refresh_token, disabled_at, last_used_at)',
      ownedThrough('user_id'),
    );
    await grantExecute(context, 'find_signed_in(text)');
  },

  async down(context) {
    await run(
      context,
      `DROP FUNCTION find_signed_in(text);
       DELETE FROM sessions WHERE method <> 'password';
       ALTER TABLE sessions
         DROP CONSTRAINT sessions_method_check,
         ADD CONSTRAINT sessions_method_check CHECK (method IN ('password'));
       ALTER TABLE users DROP COLUMN email_verified_at, DROP COLUMN pending_email;
       DROP TABLE identities;`,
    );
  },
};
