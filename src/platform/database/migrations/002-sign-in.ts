import { ownedThrough, PLATFORM } from '../schema/policies.js';
import { grantExecute, protectTable, run, type Migration } from './migration.js';

/** Limits on failed sign-ins, proofs of wallets and Farcaster accounts, and the provider's events. */
export const migration: Migration = async (context) => {
  await run(
    context,
    `CREATE TABLE sign_in_attempts (
       subject text PRIMARY KEY,
       drained_at timestamptz NOT NULL,
       blocked_until timestamptz
     );
     CREATE INDEX sign_in_attempts_drained_at ON sign_in_attempts (drained_at);

     CREATE TABLE sign_in_hosts (
       user_id text NOT NULL REFERENCES users ON DELETE CASCADE,
       host text NOT NULL,
       last_at timestamptz NOT NULL,
       PRIMARY KEY (user_id, host)
     );
     CREATE INDEX sign_in_hosts_last_at ON sign_in_hosts (last_at);

     -- Nonces that wallets have signed in with, until they would have expired.
     CREATE TABLE used_nonces (
       id text PRIMARY KEY,
       expires_at timestamptz NOT NULL
     );
     CREATE INDEX used_nonces_expires_at ON used_nonces (expires_at);

     -- One row for each proof of a Farcaster account.
     CREATE TABLE farcaster_tokens (
       id text PRIMARY KEY,
       token_hash text NOT NULL,
       fid bigint NOT NULL,
       address text,
       created_at timestamptz NOT NULL,
       expires_at timestamptz NOT NULL,
       ends_at timestamptz NOT NULL
     );
     CREATE INDEX farcaster_tokens_fid ON farcaster_tokens (fid, created_at);
     CREATE INDEX farcaster_tokens_expires_at ON farcaster_tokens (expires_at);

     -- Security events of accounts at the identity provider.
     CREATE TABLE risc_events (
       id text PRIMARY KEY,
       issuer text NOT NULL,
       matching text NOT NULL CHECK (matching IN ('subject', 'email')),
       events jsonb NOT NULL,
       happened_at timestamptz NOT NULL,
       received_at timestamptz NOT NULL DEFAULT now(),
       due_at timestamptz NOT NULL DEFAULT now(),
       applied_at timestamptz,
       outcomes jsonb
     );
     CREATE INDEX risc_events_waiting ON risc_events (due_at) WHERE applied_at IS NULL;
     CREATE INDEX risc_events_applied ON risc_events (applied_at) WHERE applied_at IS NOT NULL;

     -- Mailboxes that may not receive reset mails.
     CREATE TABLE reset_mail_stops (
       id text PRIMARY KEY,
       stopped boolean NOT NULL,
       reported_at timestamptz NOT NULL
     );`,
  );

  const every = 'SELECT, INSERT, UPDATE, DELETE';
  // Only count_sign_in() adds attempts.
  await protectTable(context, 'sign_in_attempts', 'SELECT, UPDATE, DELETE', PLATFORM);
  await protectTable(context, 'sign_in_hosts', every, ownedThrough('user_id'));
  // UPDATE (expires_at) lets a purge lock the rows that it deletes.
  const kept = 'SELECT, INSERT, UPDATE (expires_at), DELETE';
  await protectTable(context, 'used_nonces', kept, PLATFORM);
  const renewed = 'SELECT, INSERT, UPDATE (token_hash, expires_at), DELETE';
  await protectTable(context, 'farcaster_tokens', renewed, PLATFORM);
  await protectTable(context, 'risc_events', every, PLATFORM);
  await protectTable(context, 'reset_mail_stops', every, PLATFORM);

  await run(
    context,
    `-- Returns the account of an address, and whether its owner has signed in from the host within 90
     -- days. Reads behind the policies, because the user is not known yet.
     CREATE FUNCTION find_password_holder(address text, from_host text)
       RETURNS TABLE (id text, name text, email text, email_verified boolean, is_admin boolean,
                      password_hash text, known boolean)
       LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
       $$SELECT u.id, u.name, u.email, u.email_verified_at IS NOT NULL, u.is_admin,
                u.password_hash,
                EXISTS (SELECT FROM public.sign_in_hosts h
                         WHERE h.user_id = u.id AND h.host = from_host
                           AND h.last_at > now() - interval '90 days')
           FROM public.users u WHERE u.email = address$$;

     -- Counts an attempt for all subjects and returns 0, or counts none and returns the seconds to wait
     -- when a subject is blocked. Each subject drains one attempt in "drains" seconds; beyond "free"
     -- attempts its wait doubles, up to that time.
     CREATE FUNCTION count_sign_in(subjects text[], free integer[], drains double precision[])
       RETURNS double precision
       LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
       DECLARE
         at timestamptz := clock_timestamp();
         longest timestamptz;
       BEGIN
         SELECT max(a.blocked_until) INTO longest
           FROM public.sign_in_attempts a WHERE a.subject = ANY (subjects);
         IF longest > at THEN RETURN extract(epoch FROM longest - at); END IF;

         -- Rows are made and locked in one order, so that no two calls deadlock.
         INSERT INTO public.sign_in_attempts (subject, drained_at)
           SELECT s.subject, at FROM unnest(subjects) AS s (subject) ORDER BY 1
           ON CONFLICT DO NOTHING;
         PERFORM FROM public.sign_in_attempts a WHERE a.subject = ANY (subjects)
           ORDER BY a.subject FOR UPDATE;

         at := clock_timestamp();
         SELECT max(a.blocked_until) INTO longest
           FROM public.sign_in_attempts a WHERE a.subject = ANY (subjects);
         IF longest > at THEN RETURN extract(epoch FROM longest - at); END IF;

         UPDATE public.sign_in_attempts a
            SET drained_at = counted.drained_at,
                blocked_until = CASE WHEN counted.level >= counted.free
                  THEN at + make_interval(secs => least(
                         counted.drain, power(2, least(counted.level - counted.free, 30))))
                  ELSE a.blocked_until END
           FROM (SELECT c.subject, s.free, s.drain, c.drained_at,
                        ceil(extract(epoch FROM c.drained_at - at)::float8 / s.drain) AS level
                   FROM unnest(subjects, free, drains) AS s (subject, free, drain)
                  CROSS JOIN LATERAL (
                    SELECT b.subject, greatest(b.drained_at, at) + make_interval(secs => s.drain)
                             AS drained_at
                      FROM public.sign_in_attempts b WHERE b.subject = s.subject) c) counted
          WHERE a.subject = counted.subject;

         -- Deletes more rows than one call adds, so the table holds only subjects that still drain.
         DELETE FROM public.sign_in_attempts a WHERE a.subject IN (
           SELECT b.subject FROM public.sign_in_attempts b
            WHERE b.drained_at <= at ORDER BY b.drained_at LIMIT 20 FOR UPDATE SKIP LOCKED);
         RETURN 0;
       END$$;`,
  );
  await grantExecute(context, [
    'find_password_holder(text, text)',
    'count_sign_in(text[], integer[], double precision[])',
  ]);
};
