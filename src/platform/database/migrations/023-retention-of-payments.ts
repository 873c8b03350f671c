import { grantExecute, run, type Migration } from './migration.js';

const INDEXES = `
   CREATE INDEX payments_settled ON payments (settled_at) WHERE settled_at IS NOT NULL;
   CREATE INDEX payment_sessions_closed ON payment_sessions (closed_at) WHERE closed_at IS NOT NULL;
   CREATE INDEX payment_sessions_failed ON payment_sessions (created_at) WHERE state = 'failed';`;

const FUNCTIONS = `
   -- Deletes up to "most" payments that ended more than "days" ago, with their transactions, and then
   -- transactions without a payment. What stays: a signer's last nonce, from which the next one follows; a
   -- payment of an open session or split, which would be requested again; a payment whose outcome is unknown.
   CREATE FUNCTION remove_old_payments(days integer, most integer) RETURNS integer
     LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
     $$DECLARE
       cutoff timestamptz := now() - make_interval(days => greatest(days, 90));
       gone text[] := ARRAY(
         SELECT p.id FROM public.payments p
          WHERE p.settled_at < cutoff AND p.failure IS DISTINCT FROM 'unknown'
            AND NOT EXISTS (
              SELECT FROM public.transactions t
               WHERE t.payment_id = p.id AND (t.active AND t.final_at IS NULL OR t.nonce =
                 (SELECT max(n.nonce) FROM public.transactions n
                   WHERE n.chain_id = t.chain_id AND n.signer = t.signer)))
            AND NOT (p.cause ~ '^(session-open|settlement):' AND EXISTS (
              SELECT FROM public.payment_sessions s
               WHERE s.id = split_part(p.cause, ':', 2) AND s.state NOT IN ('closed', 'failed')))
            AND NOT (p.cause ~ '^split:[0-9]{1,18}:' AND EXISTS (
              SELECT FROM public.royalty_splits r
               WHERE r.id = substring(p.cause FROM '^split:([0-9]{1,18}):')::bigint
                 AND r.status IN ('queued', 'processing')))
          ORDER BY p.settled_at LIMIT most FOR UPDATE OF p SKIP LOCKED);
       done integer;
     BEGIN
       DELETE FROM public.transactions WHERE payment_id = ANY (gone);
       DELETE FROM public.payments WHERE id = ANY (gone);
       GET DIAGNOSTICS done = ROW_COUNT;
       IF done > 0 THEN RETURN done; END IF;
       DELETE FROM public.transactions WHERE hash = ANY (ARRAY(
         SELECT t.hash FROM public.transactions t
          WHERE t.final_at < cutoff AND t.payment_id IS NULL AND t.nonce <
            (SELECT max(n.nonce) FROM public.transactions n
              WHERE n.chain_id = t.chain_id AND n.signer = t.signer)
          LIMIT most FOR UPDATE SKIP LOCKED));
       GET DIAGNOSTICS done = ROW_COUNT;
       RETURN done;
     END$$;

   -- Deletes up to "most" rows of payment sessions that were closed, or failed to open, more than "days" ago:
   -- first their vouchers. A session with money on its accounts stays. The ledger's transfers stay.
   CREATE FUNCTION remove_old_payment_sessions(days integer, most integer) RETURNS integer
     LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
     $$DECLARE
       cutoff timestamptz := now() - make_interval(days => greatest(days, 90));
       gone text[] := ARRAY(
         SELECT s.id FROM public.payment_sessions s
          WHERE (s.closed_at < cutoff OR s.state = 'failed' AND s.created_at < cutoff)
            AND NOT EXISTS (
              SELECT FROM public.ledger_accounts a
               WHERE a.name IN ('session:' || s.id, 'session:' || s.id || ':spent')
                 AND (a.balance <> 0 OR a.held <> 0))
          LIMIT most FOR UPDATE OF s SKIP LOCKED);
       done integer;
     BEGIN
       DELETE FROM public.payment_vouchers WHERE id = ANY (ARRAY(
         SELECT id FROM public.payment_vouchers WHERE session_id = ANY (gone) LIMIT most));
       GET DIAGNOSTICS done = ROW_COUNT;
       IF done > 0 THEN RETURN done; END IF;
       DELETE FROM public.payment_settlements WHERE session_id = ANY (gone);
       DELETE FROM public.payment_sessions WHERE id = ANY (gone);
       GET DIAGNOSTICS done = ROW_COUNT;
       RETURN done;
     END$$;`;

/** Removal of ended payments and payment sessions. */
export const migration: Migration = async (context) => {
  await run(context, INDEXES);
  await run(context, FUNCTIONS);
  await grantExecute(context, [
    'remove_old_payments(integer, integer)',
    'remove_old_payment_sessions(integer, integer)',
  ]);
};
