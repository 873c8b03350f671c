import { ownedThrough } from '../schema/policies.js';
import { protectTable, run, servingRole, type Migration } from './migration.js';

/** Identities that were unlinked, and the sessions that added something to an account. */
export const migration: Migration = async (context) => {
  await run(
    context,
    `ALTER TABLE mails DROP CONSTRAINT mails_kind_check;
     ALTER TABLE mails ADD CONSTRAINT mails_kind_check CHECK (kind IN ('verify-email',
       'change-email', 'reset-password', 'email-change-asked', 'email-changed',
       'password-was-reset', 'keys-got-scopes', 'key-added', 'sign-in-added', 'sign-in-removed'));

     -- The identity that opened a session, or that last set the password by which it was opened.
     ALTER TABLE sessions ADD COLUMN identity_id text;
     UPDATE sessions s SET identity_id = (
       SELECT min(i.id) FROM identities i WHERE i.user_id = s.user_id AND i.kind = s.method
       HAVING count(*) = 1);

     -- added_by: the identity_id of the session that added the row. suspended_at: set while an
     -- identity that led to the addition is reported as hijacked.
     ALTER TABLE identities ADD COLUMN added_by text, ADD COLUMN suspended_at timestamptz;
     ALTER TABLE api_keys ADD COLUMN added_by text, ADD COLUMN suspended_at timestamptz;
     ALTER TABLE wallets ADD COLUMN added_by text, ADD COLUMN suspended_at timestamptz;
     ALTER TABLE users ADD COLUMN password_added_by text,
       ADD COLUMN password_added_at timestamptz, ADD COLUMN suspended_password_hash text;

     CREATE TABLE unlinked_identities (
       id text PRIMARY KEY,
       user_id text NOT NULL REFERENCES users ON DELETE CASCADE,
       kind text NOT NULL CHECK (kind IN ('google', 'github', 'wallet', 'farcaster')),
       issuer text NOT NULL,
       subject text NOT NULL CHECK (subject <> ''),
       label text NOT NULL,
       added_by text,
       disabled_at timestamptz,
       reported_at timestamptz,
       linked_at timestamptz NOT NULL,
       unlinked_at timestamptz NOT NULL DEFAULT now()
     );
     CREATE UNIQUE INDEX unlinked_identities_subject_key
       ON unlinked_identities (kind, issuer, subject);
     CREATE INDEX unlinked_identities_user_id ON unlinked_identities (user_id);

     GRANT UPDATE (suspended_at) ON identities, api_keys, wallets TO ${servingRole(context)};
     GRANT UPDATE (password_added_by, password_added_at, suspended_password_hash)
       ON users TO ${servingRole(context)};

     CREATE OR REPLACE FUNCTION find_keys(hashes text[])
       RETURNS TABLE (hash text, key_id text, user_id text, name text, email text,
                      email_verified boolean, is_admin boolean, plan text,
                      subscription_active boolean, last_used timestamptz, scopes text[])
       LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
       $$SELECT k.lookup_hash, k.id, u.id, u.name, u.email, u.email_verified_at IS NOT NULL,
                u.is_admin, s.plan,
                s.status = 'active' AND (s.period_end IS NULL OR s.period_end > now()),
                k.last_used, k.scopes
           FROM public.api_keys k
           JOIN public.users u ON u.id = k.user_id
           LEFT JOIN public.subscriptions s ON s.user_id = u.id
          WHERE k.lookup_hash = ANY (hashes) AND k.suspended_at IS NULL$$;

     -- The running release calls this one until it is replaced.
     CREATE OR REPLACE FUNCTION find_key_holders(hashes text[])
       RETURNS TABLE (hash text, key_id text, user_id text, name text, email text,
                      email_verified boolean, is_admin boolean, plan text,
                      subscription_active boolean, last_used timestamptz)
       LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
       $$SELECT f.hash, f.key_id, f.user_id, f.name, f.email, f.email_verified, f.is_admin, f.plan,
                f.subscription_active, f.last_used
           FROM public.find_keys(hashes) f$$;`,
  );
  const owned = ownedThrough('user_id');
  const kept = 'SELECT, INSERT, DELETE, UPDATE (disabled_at, reported_at)';
  await protectTable(context, 'unlinked_identities', kept, owned);
};
