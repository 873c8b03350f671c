import { ownedThrough } from '../schema/policies.js';
import { grantExecute, protectTable, run, servingRole, type Migration } from './migration.js';

/** Accounts: users, their sessions, API keys, plans, credits and installations. */
export const migration: Migration = {
  async up(context) {
    await run(
      context,
      `CREATE TABLE users (
         id text PRIMARY KEY CHECK (id <> ''),
         email text NOT NULL CHECK (email = lower(email COLLATE "C")),
         name text NOT NULL,
         password_hash text,
         is_admin boolean NOT NULL DEFAULT false,
         referral_code text CHECK (referral_code = upper(referral_code COLLATE "C")),
         created_at timestamptz NOT NULL,
         updated_at timestamptz NOT NULL
       );
       CREATE UNIQUE INDEX users_email_key ON users (email);
       CREATE UNIQUE INDEX users_referral_code_key ON users (referral_code);

       -- The owner of what programs create with the internal key and no user. Cannot sign in.
       INSERT INTO users (id, email, name, is_admin, created_at, updated_at)
         VALUES ('operator', 'operator@platform.invalid', 'Operator', true, now(), now());

       CREATE TABLE sessions (
         token_hash text PRIMARY KEY,
         user_id text NOT NULL REFERENCES users ON DELETE CASCADE,
         csrf_token text NOT NULL,
         created_at timestamptz NOT NULL,
         expires_at timestamptz NOT NULL
       );
       CREATE INDEX sessions_user_id ON sessions (user_id);
       CREATE INDEX sessions_expires_at ON sessions (expires_at);

       CREATE TABLE api_keys (
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

       CREATE TABLE credit_entries (
         id bigserial PRIMARY KEY,
         user_id text NOT NULL REFERENCES users ON DELETE RESTRICT,
         amount integer NOT NULL,
         reason text NOT NULL CHECK (reason IN ('referral')),
         reference text NOT NULL,
         created_at timestamptz NOT NULL
       );
       CREATE UNIQUE INDEX credit_entries_once ON credit_entries (user_id, reason, reference);

       CREATE TABLE installations (
         user_id text PRIMARY KEY REFERENCES users ON DELETE CASCADE,
         mode text NOT NULL CHECK (mode IN ('home', 'link', 'cloud')),
         registered_at timestamptz NOT NULL,
         last_seen timestamptz NOT NULL,
         status text NOT NULL CHECK (status IN ('active', 'inactive'))
       );`,
    );

    const owned = ownedThrough('user_id');
    await protectTable(context, 'users', 'SELECT, INSERT', ownedThrough('id'));
    // The update is for locking the rows that a purge takes.
    await protectTable(context, 'sessions', 'SELECT, INSERT, DELETE, UPDATE (expires_at)', owned);
    await protectTable(context, 'api_keys', 'SELECT, INSERT, DELETE, UPDATE (last_used)', owned);
    await protectTable(context, 'subscriptions', 'SELECT, INSERT, UPDATE', owned);
    await protectTable(context, 'credit_entries', 'SELECT, INSERT', owned);
    await protectTable(context, 'installations', 'SELECT, UPDATE', owned);
    await run(
      context,
      `GRANT USAGE ON SEQUENCE credit_entries_id_seq TO ${servingRole(context)};

       -- Whose a session's cookie, an email or a key is, is asked before any user is known: these
       -- look behind the policies, at just those rows.
       CREATE FUNCTION find_session(hash text)
         RETURNS TABLE (id text, name text, email text, is_admin boolean,
                        csrf_token text, expires_at timestamptz, plan text)
         LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
         $$SELECT u.id, u.name, u.email, u.is_admin, s.csrf_token, s.expires_at,
                  (SELECT p.plan FROM public.subscriptions p
                    WHERE p.user_id = u.id AND p.status = 'active'
                      AND (p.period_end IS NULL OR p.period_end > now()))
             FROM public.sessions s JOIN public.users u ON u.id = s.user_id
            WHERE s.token_hash = hash AND s.expires_at > now()$$;

       CREATE FUNCTION find_account(address text)
         RETURNS TABLE (id text, name text, email text, is_admin boolean, password_hash text)
         LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
         $$SELECT u.id, u.name, u.email, u.is_admin, u.password_hash
             FROM public.users u WHERE u.email = address$$;

       -- All that calls by a key are judged by comes in one round trip.
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
    await grantExecute(context, 'find_session(text)');
    await grantExecute(context, 'find_account(text)');
    await grantExecute(context, 'find_api_keys(text[])');
  },

  async down(context) {
    await run(
      context,
      `DROP FUNCTION find_api_keys(text[]);
       DROP FUNCTION find_account(text);
       DROP FUNCTION find_session(text);
       DROP TABLE installations, credit_entries, subscriptions, api_keys, sessions, users;`,
    );
  },
};
