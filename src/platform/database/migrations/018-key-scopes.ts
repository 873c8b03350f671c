import { grantExecute, run, type Migration } from './migration.js';

/** Columns that both lookups return. */
const HOLDER = `key_id text, user_id text, name text, email text, email_verified boolean,
  is_admin boolean, plan text, subscription_active boolean, last_used timestamptz, scopes text[]`;

/** Scopes of API keys. Keys made before have all but `money`, and their owners get one mail each. */
export const migration: Migration = async (context) => {
  await run(
    context,
    `ALTER TABLE api_keys ADD COLUMN scopes text[] NOT NULL
       DEFAULT '{agents,ai,files,gateway}'
       CHECK (cardinality(scopes) > 0 AND scopes <@ '{agents,ai,files,gateway,money}'::text[]);

     ALTER TABLE mails DROP CONSTRAINT mails_kind_check;
     ALTER TABLE mails ADD CONSTRAINT mails_kind_check CHECK (kind IN ('verify-email',
       'change-email', 'reset-password', 'email-change-asked', 'email-changed',
       'password-was-reset', 'keys-got-scopes'));
     INSERT INTO mails (id, kind, address, user_id)
       SELECT gen_random_uuid()::text, 'keys-got-scopes', u.email, u.id FROM users u
        WHERE EXISTS (SELECT FROM api_keys k WHERE k.user_id = u.id);

     -- The running release calls find_key_holders() and find_keys_beginning() until it is replaced. Its
     -- prepared statements would fail if these functions returned another column.
     CREATE FUNCTION find_keys(hashes text[]) RETURNS TABLE (hash text, ${HOLDER})
       LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
       $$SELECT k.lookup_hash, k.id, u.id, u.name, u.email, u.email_verified_at IS NOT NULL,
                u.is_admin, s.plan,
                s.status = 'active' AND (s.period_end IS NULL OR s.period_end > now()),
                k.last_used, k.scopes
           FROM public.api_keys k
           JOIN public.users u ON u.id = k.user_id
           LEFT JOIN public.subscriptions s ON s.user_id = u.id
          WHERE k.lookup_hash = ANY (hashes)$$;

     -- Returns the keys with this prefix, or a key without a stored prefix by its whole hash. Prefixes
     -- are random, so two keys hardly ever share a prefix.
     CREATE FUNCTION find_keys_by_prefix(beginning text, whole text)
       RETURNS TABLE (key_hash text, hash text, ${HOLDER})
       LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
       $$SELECT k.key_hash, f.*
           FROM (SELECT a.key_hash, a.lookup_hash FROM public.api_keys a WHERE a.key_prefix = beginning
                 UNION ALL
                 SELECT b.key_hash, b.lookup_hash FROM public.api_keys b
                  WHERE b.lookup_hash = whole AND b.key_prefix IS NULL
                 LIMIT 10) k
          CROSS JOIN LATERAL public.find_keys(ARRAY[k.lookup_hash]) f$$;`,
  );
  await grantExecute(context, ['find_keys(text[])', 'find_keys_by_prefix(text, text)']);
};
