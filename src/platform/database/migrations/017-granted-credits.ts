import { grantExecute, run, type Migration } from './migration.js';

/**
 * Moves what is left of referral credits to accounts of their own, and leaves bought credits where they are.
 * Holds what is left of a grant for an account whose address is not verified.
 */
const MOVE = `
   LOCK TABLE ledger_accounts IN EXCLUSIVE MODE;

   DO $$DECLARE
     one record;
     moved numeric;
     with_holds boolean;
   BEGIN
     FOR one IN
       SELECT a.name AS credits, 'user:' || a.user_id || ':granted' AS granted, a.user_id,
              a.balance, a.held,
              (SELECT coalesce(sum(t.amount), 0) FROM ledger_transfers t
                WHERE t.credit = a.name AND t.currency = 'usd' AND t.debit = 'referrals')
              - (SELECT coalesce(sum(t.amount), 0) FROM ledger_transfers t
                  WHERE t.debit = a.name AND t.currency = 'usd') AS unspent
         FROM ledger_accounts a
        WHERE a.currency = 'usd' AND a.name = 'user:' || a.user_id || ':credits'
        ORDER BY a.name COLLATE "C"
     LOOP
       -- Holds move along only if all is granted, so that no bought credit is held as a granted one.
       with_holds := one.unspent >= one.balance;
       moved := least(one.unspent, CASE WHEN with_holds THEN one.balance ELSE one.balance - one.held END);
       CONTINUE WHEN moved <= 0;
       PERFORM make_ledger_accounts(ARRAY[one.granted], 'usd');
       PERFORM book_transfer('granted:' || one.user_id, one.credits, one.granted, 'usd', moved,
                             CASE WHEN with_holds THEN one.held ELSE 0 END);
       IF with_holds THEN
         UPDATE ledger_holds h SET debit = one.granted
          WHERE h.debit = one.credits AND h.currency = 'usd' AND h.state = 'open';
         UPDATE ledger_accounts a SET held = a.held + one.held
          WHERE a.name = one.granted AND a.currency = 'usd';
       END IF;
     END LOOP;
   END$$;

   -- The referrer was credited before the new account, so the later transfer is that of the new account.
   WITH grants AS (
     SELECT t.id, t.amount, t.user_id, t.new_id, t.side, a.name, a.balance - a.held AS free,
            sum(t.amount) OVER (PARTITION BY a.name ORDER BY t.id DESC) AS up_to
       FROM (SELECT mine.id, mine.amount, mine.user_id,
                    CASE WHEN other.id < mine.id THEN p.user_id ELSE p.reference END AS new_id,
                    CASE WHEN other.id < mine.id THEN 'new' ELSE 'referrer' END AS side
               FROM ledger_transfers mine
              CROSS JOIN LATERAL (SELECT split_part(mine.cause, ':', 2) AS user_id,
                                         split_part(mine.cause, ':', 3) AS reference) AS p
               JOIN ledger_transfers other
                 ON other.cause = 'referral:' || p.reference || ':' || p.user_id
              WHERE mine.debit = 'referrals' AND mine.cause LIKE 'referral:%:%') AS t
       JOIN users u ON u.id = t.new_id AND u.email_verified_at IS NULL
       JOIN ledger_accounts a ON a.name = 'user:' || t.user_id || ':granted' AND a.currency = 'usd'
   ), made AS (
     INSERT INTO ledger_holds (cause, debit, credit, currency, amount, user_id, expires_at)
     SELECT 'unverified:' || g.new_id || ':' || g.side, g.name, 'referrals', 'usd',
            least(g.amount, g.free - g.up_to + g.amount), g.user_id, 'infinity'
       FROM grants g WHERE g.free - g.up_to + g.amount > 0
     RETURNING debit, amount
   )
   UPDATE ledger_accounts a SET held = a.held + m.amount
     FROM (SELECT debit, sum(amount) AS amount FROM made GROUP BY 1) AS m
    WHERE a.name = m.debit AND a.currency = 'usd';`;

const BOUNDS = `
   -- Granted credits pay their owner's runs or go back, and can become neither bought nor another's.
   ALTER TABLE ledger_transfers ADD CONSTRAINT ledger_transfers_granted CHECK (
     debit NOT LIKE 'user:%:granted' OR credit IN ('referrals', left(debit, -7) || 'spent'));
   ALTER TABLE ledger_holds ADD CONSTRAINT ledger_holds_granted CHECK (
     debit NOT LIKE 'user:%:granted' OR credit IN ('referrals', left(debit, -7) || 'spent'));
   -- The sum of a day is what was granted on it.
   CREATE INDEX ledger_transfers_granted ON ledger_transfers (created_at) WHERE debit = 'referrals';`;

const OPERATIONS = `
   -- Holds an amount of a user's credits: granted ones first, if they may pay, and the rest of bought
   -- ones. The hold of granted credits has the cause with ':granted'.
   CREATE FUNCTION hold_credits(of_cause text, of_user text, wanted numeric, with_granted boolean,
                                until timestamptz) RETURNS text
     LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
     $$DECLARE
       credits text := 'user:' || of_user || ':credits';
       granted text := 'user:' || of_user || ':granted';
       spent text := 'user:' || of_user || ':spent';
       known record;
       free numeric;
       of_granted numeric := 0;
       outcome text;
     BEGIN
       PERFORM public.check_ledger_access(credits);
       PERFORM public.lock_ledger_accounts(ARRAY[credits, granted], 'usd', 0);
       -- Of two holds that ended, one may still be open: the other counts.
       SELECT sum(h.amount) AS amount, max(h.state) AS state,
              bool_and(h.debit IN (credits, granted) AND h.credit = spent) AS ours
         INTO known FROM public.ledger_holds h WHERE h.cause IN (of_cause, of_cause || ':granted');
       IF known.amount IS NOT NULL THEN
         RETURN CASE WHEN known.ours AND known.amount = wanted THEN known.state ELSE 'other' END;
       END IF;
       IF with_granted THEN
         SELECT least(wanted, a.balance - a.held) INTO of_granted
           FROM public.ledger_accounts a WHERE a.name = granted AND a.currency = 'usd';
         of_granted := coalesce(of_granted, 0);
       END IF;
       SELECT a.balance - a.held INTO free
         FROM public.ledger_accounts a WHERE a.name = credits AND a.currency = 'usd';
       IF wanted - of_granted > coalesce(free, 0) THEN RETURN 'insufficient'; END IF;
       outcome := 'open';
       IF of_granted > 0 THEN
         outcome := public.ledger_hold(of_cause || ':granted', granted, spent, 'usd', of_granted,
                                       until);
       END IF;
       IF wanted > of_granted AND outcome = 'open' THEN
         outcome := public.ledger_hold(of_cause, credits, spent, 'usd', wanted - of_granted, until);
       END IF;
       -- The accounts are locked, so only a hold of another account's can be in the way.
       IF outcome <> 'open' THEN
         RAISE EXCEPTION '% is the cause of another hold', of_cause USING ERRCODE = 'unique_violation';
       END IF;
       RETURN outcome;
     END$$;

   -- Posts all of these holds, or none. Holds are locked before accounts, each in their order.
   CREATE FUNCTION ledger_post_all(causes text[]) RETURNS text
     LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
     $$DECLARE
       outcome text := public.lock_ledger_holds(causes);
       one text;
     BEGIN
       IF outcome <> 'open' THEN RETURN outcome; END IF;
       FOR one IN SELECT h.cause FROM public.ledger_holds h WHERE h.cause = ANY (causes) LOOP
         IF public.ledger_post(one, NULL) <> 'posted' THEN
           RAISE EXCEPTION 'a locked hold was not posted';
         END IF;
       END LOOP;
       RETURN 'posted';
     END$$;

   -- Frees all of these holds, unless they were posted.
   CREATE FUNCTION ledger_release_all(causes text[]) RETURNS text
     LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
     $$DECLARE
       outcome text := public.lock_ledger_holds(causes);
       one text;
     BEGIN
       IF outcome IN ('posted', 'unknown') THEN RETURN outcome; END IF;
       FOR one IN SELECT h.cause FROM public.ledger_holds h WHERE h.cause = ANY (causes) LOOP
         PERFORM public.ledger_release(one);
       END LOOP;
       RETURN 'released';
     END$$;`;

const STEPS = `
   -- Locks holds and their accounts, and returns the state of all: 'released' if one of them is.
   CREATE FUNCTION lock_ledger_holds(causes text[]) RETURNS text
     LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS
     $$DECLARE
       state_of_all text;
     BEGIN
       PERFORM FROM public.ledger_holds h WHERE h.cause = ANY (causes)
         ORDER BY h.cause COLLATE "C" FOR UPDATE;
       PERFORM FROM public.ledger_accounts a
         WHERE (a.name, a.currency) IN (
           SELECT h.debit, h.currency FROM public.ledger_holds h WHERE h.cause = ANY (causes)
           UNION ALL
           SELECT h.credit, h.currency FROM public.ledger_holds h WHERE h.cause = ANY (causes))
         ORDER BY a.name COLLATE "C", a.currency FOR NO KEY UPDATE;
       SELECT max(h.state) INTO state_of_all
         FROM public.ledger_holds h WHERE h.cause = ANY (causes);
       RETURN coalesce(state_of_all, 'unknown');
     END$$;`;

/** Credits that were granted, apart from bought ones. */
export const migration: Migration = async (context) => {
  await run(context, MOVE);
  await run(context, BOUNDS);
  await run(context, STEPS);
  await run(context, OPERATIONS);
  await grantExecute(context, [
    'hold_credits(text, text, numeric, boolean, timestamptz)',
    'ledger_post_all(text[])',
    'ledger_release_all(text[])',
  ]);
};
