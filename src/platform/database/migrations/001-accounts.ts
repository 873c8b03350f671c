import { ownedThrough, PLATFORM } from '../schema/policies.js';
import { grantExecute, protectTable, run, type Migration } from './migration.js';

/** Users, their identities, sessions and API keys, subscriptions, installations, and admin links. */
export const migration: Migration = async (context) => {
  await run(
    context,
    `CREATE TABLE users (
       id text PRIMARY KEY CHECK (id <> ''),
       email text NOT NULL CHECK (email = lower(email COLLATE "C")),
       email_verified_at timestamptz,
       pending_email text CHECK (pending_email = lower(pending_email COLLATE "C")),
       name text NOT NULL,
       password_hash text,
       is_admin boolean NOT NULL DEFAULT false,
       referral_code text CHECK (referral_code = upper(referral_code COLLATE "C")),
       created_at timestamptz NOT NULL,
       updated_at timestamptz NOT NULL
     );
     CREATE UNIQUE INDEX users_email_key ON users (email);
     CREATE UNIQUE INDEX users_referral_code_key ON users (referral_code);

     -- Owns everything that programs create with the internal key and without a user. Cannot sign in.
     INSERT INTO users (id, email, name, is_admin, created_at, updated_at)
       VALUES ('operator', 'operator@platform.invalid', 'Operator', true, now(), now());

     CREATE TABLE identities (
       id text PRIMARY KEY,
       user_id text NOT NULL REFERENCES users ON DELETE CASCADE,
       kind text NOT NULL CHECK (kind IN ('google', 'github', 'wallet', 'farcaster')),
       issuer text NOT NULL,
       subject text NOT NULL CHECK (subject <> ''),
       label text NOT NULL,
       refresh_token text,
       disabled_at timestamptz,
       reported_at timestamptz,
       created_at timestamptz NOT NULL,
       last_used_at timestamptz
     );
     CREATE UNIQUE INDEX identities_subject_key ON identities (kind, issuer, subject);
     CREATE INDEX identities_user_id ON identities (user_id);

     CREATE TABLE sessions (
       token_hash text PRIMARY KEY,
       id text NOT NULL DEFAULT gen_random_uuid()::text,
       user_id text NOT NULL REFERENCES users ON DELETE CASCADE,
       method text NOT NULL DEFAULT 'password'
         CHECK (method IN ('password', 'google', 'github', 'wallet')),
       csrf_token text,
       created_at timestamptz NOT NULL,
       last_seen_at timestamptz NOT NULL DEFAULT now(),
       expires_at timestamptz NOT NULL,
       user_agent text,
       address text
     );
     CREATE UNIQUE INDEX sessions_id_key ON sessions (id);
     CREATE INDEX sessions_user_id ON sessions (user_id);
     CREATE INDEX sessions_expires_at ON sessions (expires_at);

     CREATE TABLE api_keys (
       id text PRIMARY KEY,
       user_id text NOT NULL REFERENCES users ON DELETE CASCADE,
       name text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 64),
       key_preview text NOT NULL,
       key_hash text NOT NULL,
       lookup_hash text NOT NULL,
       key_prefix text,
       created_at timestamptz NOT NULL,
       last_used timestamptz
     );
     CREATE UNIQUE INDEX api_keys_lookup_hash_key ON api_keys (lookup_hash);
     CREATE INDEX api_keys_key_prefix ON api_keys (key_prefix);
     CREATE INDEX api_keys_user_time ON api_keys (user_id, created_at);

     CREATE TABLE subscriptions (
       user_id text PRIMARY KEY REFERENCES users ON DELETE CASCADE,
       plan text NOT NULL CHECK (plan IN ('label', 'solo', 'collective', 'network')),
       status text NOT NULL CHECK (status IN ('active', 'cancelled')),
       source text NOT NULL,
       period_start timestamptz NOT NULL,
       period_end timestamptz CHECK (period_end > period_start),
       created_at timestamptz NOT NULL,
       updated_at timestamptz NOT NULL
     );

     CREATE TABLE installations (
       user_id text PRIMARY KEY REFERENCES users ON DELETE CASCADE,
       mode text NOT NULL CHECK (mode IN ('home', 'link', 'cloud')),
       registered_at timestamptz NOT NULL,
       last_seen timestamptz NOT NULL,
       status text NOT NULL CHECK (status IN ('active', 'inactive'))
     );

     CREATE TABLE admin_links (
       email text PRIMARY KEY,
       token_hash text NOT NULL,
       expires_at timestamptz NOT NULL
     );`,
  );

  const owned = ownedThrough('user_id');
  await protectTable(
    context,
    'users',
    `SELECT, INSERT,
     UPDATE (email, email_verified_at, pending_email, name, password_hash, updated_at)`,
    ownedThrough('id'),
  );
  await protectTable(
    context,
    'identities',
    'SELECT, INSERT, DELETE, UPDATE (label, refresh_token, disabled_at, reported_at, last_used_at)',
    owned,
  );
  // UPDATE (expires_at) lets a purge lock the rows that it deletes.
  await protectTable(
    context,
    'sessions',
    'SELECT, INSERT, DELETE, UPDATE (last_seen_at, expires_at)',
    owned,
  );
  await protectTable(
    context,
    'api_keys',
    'SELECT, INSERT, DELETE, UPDATE (key_prefix, last_used)',
    owned,
  );
  await protectTable(context, 'subscriptions', 'SELECT, INSERT, UPDATE', owned);
  await protectTable(context, 'installations', 'SELECT, UPDATE', owned);
  await protectTable(context, 'admin_links', 'SELECT, INSERT, UPDATE, DELETE', PLATFORM);

  await run(
    context,
    `-- Sessions and keys are looked up before the user is known, so these functions read behind the
     -- policies, at just those rows.
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
          WHERE s.token_hash = hash AND s.expires_at > now()$$;

     CREATE FUNCTION find_key_holders(hashes text[])
       RETURNS TABLE (hash text, key_id text, user_id text, name text, email text,
                      email_verified boolean, is_admin boolean, plan text,
                      subscription_active boolean, last_used timestamptz)
       LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
       $$SELECT k.lookup_hash, k.id, u.id, u.name, u.email, u.email_verified_at IS NOT NULL,
                u.is_admin, s.plan,
                s.status = 'active' AND (s.period_end IS NULL OR s.period_end > now()),
                k.last_used
           FROM public.api_keys k
           JOIN public.users u ON u.id = k.user_id
           LEFT JOIN public.subscriptions s ON s.user_id = u.id
          WHERE k.lookup_hash = ANY (hashes)$$;

     -- Returns the keys with this prefix, or a key without a stored prefix by its whole hash. Prefixes
     -- are random, so two keys hardly ever share a prefix.
     CREATE FUNCTION find_keys_beginning(beginning text, whole text)
       RETURNS TABLE (key_hash text, hash text, key_id text, user_id text, name text, email text,
                      email_verified boolean, is_admin boolean, plan text,
                      subscription_active boolean, last_used timestamptz)
       LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
       $$SELECT k.key_hash, f.*
           FROM (SELECT a.key_hash, a.lookup_hash FROM public.api_keys a WHERE a.key_prefix = beginning
                 UNION ALL
                 SELECT b.key_hash, b.lookup_hash FROM public.api_keys b
                  WHERE b.lookup_hash = whole AND b.key_prefix IS NULL
                 LIMIT 10) k
          CROSS JOIN LATERAL public.find_key_holders(ARRAY[k.lookup_hash]) f$$;

     -- The only way to make a user an admin: the serving role has no UPDATE on is_admin.
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
  await grantExecute(context, [
    'find_signed_in(text)',
    'find_key_holders(text[])',
    'find_keys_beginning(text, text)',
    'use_admin_link(text, text)',
  ]);
};
