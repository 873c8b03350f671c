import { ownedThrough, PLATFORM, seenWith } from '../schema/policies.js';
import { grantExecute, protectTable, run, type Migration } from './migration.js';

const TABLES = `
   CREATE TABLE payment_sessions (
     id text PRIMARY KEY,
     -- Null once the account is deleted: the hold is settled all the same.
     user_id text REFERENCES users ON DELETE SET NULL,
     token_hash text NOT NULL,
     token_end text NOT NULL,
     sealed_token text NOT NULL,
     address text NOT NULL CHECK (address ~ '^0x[0-9a-f]{40}$'),
     chain_id bigint NOT NULL,
     escrow text NOT NULL CHECK (escrow ~ '^0x[0-9a-f]{40}$'),
     hold_id text NOT NULL CHECK (hold_id ~ '^0x[0-9a-f]{64}$'),
     nonce text NOT NULL CHECK (nonce ~ '^0x[0-9a-f]{64}$'),
     authorization_deadline timestamptz NOT NULL,
     deposit numeric(24,0) NOT NULL CHECK (deposit > 0),
     state text NOT NULL DEFAULT 'opening'
       CHECK (state IN ('opening', 'active', 'settling', 'closed', 'failed')),
     next_sequence bigint NOT NULL DEFAULT 1 CHECK (next_sequence > 0),
     delivered numeric(24,0) NOT NULL DEFAULT 0 CHECK (delivered BETWEEN 0 AND deposit),
     settled numeric(24,0) NOT NULL DEFAULT 0 CHECK (settled BETWEEN 0 AND delivered),
     settlement_due_at timestamptz,
     hold_expires_at timestamptz,
     due_at timestamptz NOT NULL DEFAULT now(),
     created_at timestamptz NOT NULL DEFAULT now(),
     opened_at timestamptz,
     closing_at timestamptz,
     closed_at timestamptz,
     failure text,
     CONSTRAINT payment_sessions_opened CHECK (
       (opened_at IS NULL) = (state IN ('opening', 'failed'))
       AND (hold_expires_at IS NULL) = (opened_at IS NULL)),
     CONSTRAINT payment_sessions_closing
       CHECK ((closing_at IS NOT NULL) = (state IN ('settling', 'closed'))),
     CONSTRAINT payment_sessions_closed CHECK ((closed_at IS NOT NULL) = (state = 'closed')),
     CONSTRAINT payment_sessions_failed CHECK ((failure IS NOT NULL) = (state = 'failed'))
   );
   CREATE UNIQUE INDEX payment_sessions_token ON payment_sessions (token_hash);
   CREATE UNIQUE INDEX payment_sessions_authorization ON payment_sessions (escrow, address, nonce);
   -- A wallet has one open session for each chain, because its cover serves one session.
   CREATE UNIQUE INDEX payment_sessions_open ON payment_sessions (chain_id, address)
     WHERE state IN ('opening', 'active', 'settling');
   CREATE INDEX payment_sessions_listed ON payment_sessions (address, created_at, id);
   CREATE INDEX payment_sessions_user ON payment_sessions (user_id);
   CREATE INDEX payment_sessions_due ON payment_sessions (due_at)
     WHERE state IN ('opening', 'settling');
   CREATE INDEX payment_sessions_settlement_due ON payment_sessions (settlement_due_at)
     WHERE settlement_due_at IS NOT NULL;
   CREATE INDEX payment_sessions_aging ON payment_sessions (opened_at) WHERE state = 'active';
   CREATE INDEX payment_sessions_expiring ON payment_sessions (hold_expires_at)
     WHERE state = 'active';
   -- Openings that were reverted on chain, which are rate limited.
   CREATE INDEX payment_sessions_reverted ON payment_sessions (created_at)
     WHERE failure = 'reverted';
   CREATE TRIGGER payment_sessions_need_account AFTER INSERT ON payment_sessions
     FOR EACH ROW EXECUTE FUNCTION refuse_without_account();

   CREATE TABLE payment_vouchers (
     id text PRIMARY KEY,
     session_id text NOT NULL REFERENCES payment_sessions,
     sequence bigint NOT NULL CHECK (sequence > 0),
     amount numeric(24,0) NOT NULL CHECK (amount > 0),
     -- The sum of the session's vouchers up to and including this one.
     cumulative numeric(24,0) NOT NULL CHECK (cumulative >= amount),
     plugin text NOT NULL,
     action text NOT NULL,
     created_at timestamptz NOT NULL DEFAULT now()
   );
   CREATE UNIQUE INDEX payment_vouchers_sequence ON payment_vouchers (session_id, sequence);

   CREATE TABLE payment_settlements (
     session_id text NOT NULL REFERENCES payment_sessions,
     -- The total that the treasury has received of the hold afterwards.
     cumulative numeric(24,0) NOT NULL CHECK (cumulative >= 0),
     kind text NOT NULL CHECK (kind IN ('settle', 'close')),
     state text NOT NULL DEFAULT 'requested'
       CHECK (state IN ('requested', 'confirmed', 'failed')),
     attempts integer NOT NULL DEFAULT 1 CHECK (attempts > 0),
     -- The cause of the newest payment.
     payment text NOT NULL,
     transaction text,
     retry_at timestamptz,
     requested_at timestamptz NOT NULL DEFAULT now(),
     ended_at timestamptz,
     PRIMARY KEY (session_id, cumulative, kind),
     CHECK ((ended_at IS NULL) = (state = 'requested')),
     CHECK ((retry_at IS NOT NULL) = (state = 'failed'))
   );
   CREATE UNIQUE INDEX payment_settlements_payment ON payment_settlements (payment);
   -- Settlements of a session run one after the other: each needs the outcome of the one before.
   CREATE UNIQUE INDEX payment_settlements_under_way ON payment_settlements (session_id)
     WHERE state = 'requested';`;

const DEBIT_ONE = `
   -- Lock order of debits: the session's row, a hold, accounts. So no debit begins once the session is
   -- settling, and the process that settles knows all holds. Debits run as the platform in the
   -- transaction of any tenant.
   CREATE FUNCTION hold_debit(of_session text, of_voucher text, wanted numeric, until timestamptz,
                              OUT outcome text, OUT remaining numeric)
     LANGUAGE plpgsql SECURITY DEFINER
     SET search_path = pg_catalog, pg_temp AS
     $$DECLARE
       account text := 'session:' || of_session;
       of_state text;
       asked_as text := current_setting('app.platform', true);
     BEGIN
       SELECT s.state, s.deposit - s.delivered INTO of_state, remaining
         FROM public.payment_sessions s WHERE s.id = of_session FOR NO KEY UPDATE;
       PERFORM set_config('app.platform', 'on', true);
       IF of_state = 'active' THEN
         outcome := public.ledger_hold('voucher:' || of_voucher, account, account || ':spent',
                                       'pathusd', wanted, until);
       ELSIF of_state IN ('settling', 'closed') THEN
         outcome := 'closed';
       ELSE
         outcome := 'unknown';
       END IF;
       PERFORM set_config('app.platform', coalesce(asked_as, ''), true);
       SELECT remaining - a.held INTO remaining FROM public.ledger_accounts a
        WHERE a.name = account AND a.currency = 'pathusd';
     END$$;

   -- Posts a hold and writes its voucher. Idempotent: a repetition returns the same voucher.
   CREATE FUNCTION post_debit(of_session text, of_voucher text, of_plugin text, of_action text,
                              settle_from numeric, settle_after interval,
                              OUT outcome text, OUT sequence bigint, OUT amount numeric,
                              OUT cumulative numeric, OUT created_at timestamptz,
                              OUT remaining numeric)
     LANGUAGE plpgsql SECURITY DEFINER
     SET search_path = pg_catalog, pg_temp AS
     $$DECLARE
       account text := 'session:' || of_session;
       deposited numeric;
       asked_as text := current_setting('app.platform', true);
     BEGIN
       SELECT s.deposit INTO deposited FROM public.payment_sessions s
        WHERE s.id = of_session FOR NO KEY UPDATE;
       PERFORM set_config('app.platform', 'on', true);
       outcome := public.ledger_post('voucher:' || of_voucher, NULL);
       PERFORM set_config('app.platform', coalesce(asked_as, ''), true);
       IF outcome <> 'posted' THEN RETURN; END IF;
       SELECT v.sequence, v.amount, v.cumulative, v.created_at
         INTO sequence, amount, cumulative, created_at
         FROM public.payment_vouchers v WHERE v.id = of_voucher;
       IF NOT FOUND THEN
         UPDATE public.payment_sessions s
            SET next_sequence = s.next_sequence + 1, delivered = s.delivered + h.amount,
                settlement_due_at = CASE
                  WHEN s.delivered + h.amount - s.settled >= settle_from
                    THEN least(s.settlement_due_at, now())
                  ELSE coalesce(s.settlement_due_at, now() + settle_after) END
           FROM public.ledger_holds h
          WHERE s.id = of_session AND h.cause = 'voucher:' || of_voucher AND h.debit = account
          RETURNING s.next_sequence - 1, h.amount, s.delivered, now()
           INTO STRICT sequence, amount, cumulative, created_at;
         INSERT INTO public.payment_vouchers
             (id, session_id, sequence, amount, cumulative, plugin, action, created_at)
           VALUES (of_voucher, of_session, sequence, amount, cumulative, of_plugin, of_action,
                   created_at);
       END IF;
       SELECT deposited - s.delivered - a.held INTO remaining
         FROM public.payment_sessions s, public.ledger_accounts a
        WHERE s.id = of_session AND a.name = account AND a.currency = 'pathusd';
     END$$;`;

const DEBIT_MANY = `
   -- Holds and posts many debits in a few statements, as hold_debit and post_debit do for each. It
   -- returns 'alone' for every debit that it leaves to those two: the session is locked or not active,
   -- the hold is not covered or exists, or the post is of a hold that is not open.
   CREATE FUNCTION run_debits(kinds text[], sessions text[], vouchers text[], wanted numeric[],
                              until timestamptz[], plugins text[], actions text[],
                              settle_from numeric, settle_after interval)
     RETURNS TABLE (outcome text, sequence bigint, amount numeric, cumulative numeric,
                    created_at timestamptz, remaining numeric)
     LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
     -- Plans are made once for a connection: planning each call costs a seventh to a quarter of its
     -- time. They use indexes alone, because the tables may still be small when they are made.
     SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
     SET plan_cache_mode = force_generic_plan AS
     $$#variable_conflict use_column
     DECLARE
       locked text[];
       to_post bigint[];
       to_hold bigint[] := '{}';
       one record;
       left_over numeric;
       current_session text;
     BEGIN
       -- Locks are taken in the order of hold_debit, and locked sessions are skipped: no deadlock.
       locked := ARRAY(
         SELECT s.id FROM public.payment_sessions s WHERE s.id = ANY (sessions)
          ORDER BY s.id FOR NO KEY UPDATE SKIP LOCKED);
       PERFORM FROM public.ledger_holds h
        WHERE h.cause = ANY (ARRAY(
          SELECT 'voucher:' || a.voucher FROM unnest(kinds, sessions, vouchers) a(kind, session, voucher)
           WHERE a.kind = 'post' AND a.session = ANY (locked)))
        ORDER BY h.cause FOR UPDATE;
       PERFORM FROM public.ledger_accounts a
        WHERE a.name = ANY (ARRAY(
          SELECT 'session:' || t || part FROM unnest(locked) t, unnest(ARRAY['', ':spent']) part))
          AND a.currency = 'pathusd'
        ORDER BY a.name COLLATE "C" FOR NO KEY UPDATE;

       to_post := ARRAY(
         SELECT min(a.place)
           FROM unnest(kinds, sessions, vouchers) WITH ORDINALITY a(kind, session, voucher, place)
           JOIN public.ledger_holds h ON h.cause = 'voucher:' || a.voucher
          WHERE a.kind = 'post' AND a.session = ANY (locked) AND h.state = 'open'
            AND h.debit = 'session:' || a.session AND h.credit = h.debit || ':spent'
            AND h.currency = 'pathusd'
            AND NOT EXISTS (SELECT FROM public.payment_vouchers v WHERE v.id = a.voucher)
            AND NOT EXISTS (SELECT FROM public.ledger_transfers t WHERE t.cause = h.cause)
          GROUP BY a.voucher);
       IF cardinality(to_post) > 0 THEN
         WITH asked AS (
           SELECT a.session, a.voucher, a.plugin, a.action, h.amount,
                  s.next_sequence - 1 + row_number() OVER turns AS sequence,
                  s.delivered + sum(h.amount) OVER turns AS cumulative
             FROM unnest(sessions, vouchers, plugins, actions) WITH ORDINALITY
                  a(session, voucher, plugin, action, place)
             JOIN public.ledger_holds h ON h.cause = 'voucher:' || a.voucher
             JOIN public.payment_sessions s ON s.id = a.session
            WHERE a.place = ANY (to_post)
           WINDOW turns AS (PARTITION BY a.session ORDER BY a.place)
         ), moved AS (
           INSERT INTO public.ledger_transfers (cause, debit, credit, currency, amount)
           SELECT 'voucher:' || p.voucher, 'session:' || p.session,
                  'session:' || p.session || ':spent', 'pathusd', p.amount
             FROM asked p ORDER BY p.session, p.sequence
         ), settled AS (
           UPDATE public.ledger_holds h
              SET state = 'posted', posted = h.amount, settled_at = now()
             FROM asked p WHERE h.cause = 'voucher:' || p.voucher
         ), written AS (
           INSERT INTO public.payment_vouchers
               (id, session_id, sequence, amount, cumulative, plugin, action, created_at)
           SELECT p.voucher, p.session, p.sequence, p.amount, p.cumulative, p.plugin, p.action, now()
             FROM asked p
         ), sums AS (
           SELECT p.session, count(*) AS times, sum(p.amount) AS amount FROM asked p GROUP BY 1
         ), paid AS (
           UPDATE public.ledger_accounts a
              SET balance = a.balance - m.amount, held = a.held - m.amount
             FROM sums m WHERE a.name = 'session:' || m.session AND a.currency = 'pathusd'
         ), spent AS (
           UPDATE public.ledger_accounts a SET balance = a.balance + m.amount
             FROM sums m
            WHERE a.name = 'session:' || m.session || ':spent' AND a.currency = 'pathusd'
         )
         UPDATE public.payment_sessions s
            SET next_sequence = s.next_sequence + m.times, delivered = s.delivered + m.amount,
                settlement_due_at = CASE
                  WHEN s.delivered + m.amount - s.settled >= settle_from
                    THEN least(s.settlement_due_at, now())
                  ELSE coalesce(s.settlement_due_at, now() + settle_after) END
           FROM sums m WHERE s.id = m.session;
       END IF;

       FOR one IN
         SELECT a.place, a.session, a.wanted, o.balance - o.held AS free
           FROM unnest(kinds, sessions, vouchers, wanted) WITH ORDINALITY
                a(kind, session, voucher, wanted, place)
           JOIN public.payment_sessions s ON s.id = a.session AND s.state = 'active'
           JOIN public.ledger_accounts o
             ON o.name = 'session:' || a.session AND o.currency = 'pathusd'
           JOIN public.ledger_accounts t ON t.name = o.name || ':spent' AND t.currency = 'pathusd'
          WHERE a.kind = 'hold' AND a.session = ANY (locked) AND a.wanted > 0
            AND NOT EXISTS (
              SELECT FROM public.ledger_holds h WHERE h.cause = 'voucher:' || a.voucher)
          ORDER BY a.session, a.place
       LOOP
         IF current_session IS DISTINCT FROM one.session THEN
           current_session := one.session;
           left_over := one.free;
         END IF;
         IF one.wanted <= left_over THEN
           left_over := left_over - one.wanted;
           to_hold := to_hold || one.place;
         END IF;
       END LOOP;
       IF cardinality(to_hold) > 0 THEN
         WITH asked AS (
           SELECT a.session, a.voucher, a.wanted, a.until
             FROM unnest(sessions, vouchers, wanted, until) WITH ORDINALITY
                  a(session, voucher, wanted, until, place)
            WHERE a.place = ANY (to_hold)
         ), made AS (
           INSERT INTO public.ledger_holds (cause, debit, credit, currency, amount, expires_at)
           SELECT 'voucher:' || h.voucher, 'session:' || h.session,
                  'session:' || h.session || ':spent', 'pathusd', h.wanted, h.until
             FROM asked h
         )
         UPDATE public.ledger_accounts a SET held = a.held + m.amount
           FROM (SELECT h.session, sum(h.wanted) AS amount FROM asked h GROUP BY 1) m
          WHERE a.name = 'session:' || m.session AND a.currency = 'pathusd';
       END IF;

       RETURN QUERY
         SELECT CASE WHEN a.place = ANY (to_post) THEN 'posted'
                     WHEN a.place = ANY (to_hold) THEN 'open' ELSE 'alone' END,
                v.sequence, v.amount, v.cumulative, v.created_at,
                s.deposit - s.delivered - o.held
           FROM unnest(sessions, vouchers) WITH ORDINALITY a(session, voucher, place)
           LEFT JOIN public.payment_vouchers v ON a.place = ANY (to_post) AND v.id = a.voucher
           LEFT JOIN public.payment_sessions s ON s.id = a.session
           LEFT JOIN public.ledger_accounts o
             ON o.name = 'session:' || a.session AND o.currency = 'pathusd'
          ORDER BY a.place;
     END$$;`;

const FIND = `
   CREATE FUNCTION find_paying_sessions(hashes text[])
     RETURNS TABLE (hash text, id text, address text)
     LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
     $$SELECT s.token_hash, s.id, s.address FROM public.payment_sessions s
        WHERE s.token_hash = ANY (hashes) AND s.opened_at IS NOT NULL$$;`;

/** Holds of wallets for their purchases, vouchers for what was delivered, and settlements on chain. */
export const migration: Migration = async (context) => {
  await run(context, TABLES);
  await protectTable(
    context,
    'payment_sessions',
    `SELECT, INSERT, UPDATE (sealed_token, state, next_sequence, delivered, settled,
       settlement_due_at, hold_expires_at, due_at, opened_at, closing_at, closed_at, failure)`,
    ownedThrough('user_id'),
  );
  const ofSession = seenWith('session_id', 'payment_sessions');
  await protectTable(context, 'payment_vouchers', 'SELECT', ofSession);
  await protectTable(
    context,
    'payment_settlements',
    `SELECT, INSERT,
     UPDATE (state, attempts, payment, transaction, retry_at, requested_at, ended_at)`,
    PLATFORM,
  );
  for (const functions of [FIND, DEBIT_ONE, DEBIT_MANY]) await run(context, functions);
  await grantExecute(context, [
    'find_paying_sessions(text[])',
    'hold_debit(text, text, numeric, timestamptz)',
    'post_debit(text, text, text, text, numeric, interval)',
    `run_debits(text[], text[], text[], numeric[], timestamptz[], text[], text[], numeric,
                interval)`,
  ]);
};
