import { grantExecute, run, type Migration } from './migration.js';

const FUNCTIONS = [
  'find_paying_session(text, text)',
  'run_debits(text[], text[], text[], numeric[], timestamptz[], text[], text[], numeric, interval)',
] as const;

/** Debits of payment sessions many at a time, and the look for who pays in one statement. */
export const migration: Migration = {
  async up(context) {
    await run(
      context,
      `CREATE FUNCTION find_paying_session(of_token text, of_address text) RETURNS TABLE (id text)
         LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
         $$SELECT s.id FROM public.payment_sessions s
            WHERE s.token_hash = of_token AND s.address = of_address AND s.opened_at IS NOT NULL$$;

       -- Holds and posts what is asked for, as hold_debit and post_debit do one by one, with few
       -- statements for all of it. Only what is as it is nearly always is done here: a session that
       -- somebody else has locked, one that is not active, a hold that is not covered or was made before,
       -- a post of what is not open or was posted before are left to those two, and told as 'alone'.
       -- Locks are taken in the order of those, and no session is waited for: no deadlock.
       CREATE FUNCTION run_debits(kinds text[], sessions text[], vouchers text[], wanted numeric[],
                                  until timestamptz[], plugins text[], actions text[],
                                  settle_from numeric, settle_after interval)
         RETURNS TABLE (outcome text, sequence bigint, amount numeric, cumulative numeric,
                        created_at timestamptz, remaining numeric)
         LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
         $$#variable_conflict use_column
         DECLARE
           locked text[];
           to_post bigint[];
           to_hold bigint[] := '{}';
           one record;
           left_over numeric;
           current_session text;
         BEGIN
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
         END$$;`,
    );
    for (const signature of FUNCTIONS) await grantExecute(context, signature);
  },

  async down(context) {
    await run(context, FUNCTIONS.map((signature) => `DROP FUNCTION ${signature};`).join('\n'));
  },
};
