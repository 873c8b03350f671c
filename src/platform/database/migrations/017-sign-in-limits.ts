import { ownedThrough, PLATFORM } from '../schema/policies.js';
import { grantExecute, protectTable, run, type Migration } from './migration.js';

/** How many sign-ins fail, and from where users sign in. */
export const migration: Migration = {
  async up(context) {
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
       CREATE INDEX sign_in_hosts_last_at ON sign_in_hosts (last_at);`,
    );
    await protectTable(context, 'sign_in_attempts', 'SELECT, UPDATE, DELETE', PLATFORM);
    await protectTable(
      context,
      'sign_in_hosts',
      'SELECT, INSERT, UPDATE, DELETE',
      ownedThrough('user_id'),
    );
    await run(
      context,
      `-- Counts an attempt in all subjects, or in none when one of them has to wait: the seconds, or
       -- 0. What a subject has counted drains, one in so many seconds; beyond those that are free
       -- the wait doubles, up to that time.
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

           -- Always in the same order, so that no two of them wait for each other.
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

           -- More than it may have added: the table stays as small as what has not drained.
           DELETE FROM public.sign_in_attempts a WHERE a.subject IN (
             SELECT b.subject FROM public.sign_in_attempts b
              WHERE b.drained_at <= at ORDER BY b.drained_at LIMIT 20 FOR UPDATE SKIP LOCKED);
           RETURN 0;
         END$$;

       -- Beside find_account(): whether its owner has signed in from that host, within 90 days.
       CREATE FUNCTION find_sign_in(address text, from_host text)
         RETURNS TABLE (id text, name text, email text, is_admin boolean, password_hash text,
                        known boolean)
         LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
         $$SELECT u.id, u.name, u.email, u.is_admin, u.password_hash,
                  EXISTS (SELECT FROM public.sign_in_hosts h
                           WHERE h.user_id = u.id AND h.host = from_host
                             AND h.last_at > now() - interval '90 days')
             FROM public.users u WHERE u.email = address$$;`,
    );
    await grantExecute(context, 'count_sign_in(text[], integer[], double precision[])');
    await grantExecute(context, 'find_sign_in(text, text)');
  },

  async down(context) {
    await run(
      context,
      `DROP FUNCTION find_sign_in(text, text);
       DROP FUNCTION count_sign_in(text[], integer[], double precision[]);
       DROP TABLE sign_in_hosts, sign_in_attempts;`,
    );
  },
};
