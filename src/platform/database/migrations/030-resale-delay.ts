import { grantExecute, run, type Migration } from './migration.js';

const FUNCTIONS = `
   -- The bought credits that may pay for resold runs: none while a dispute is open or a debt is unpaid, and none
   -- of a payment that is younger than the delay, because it may still be disputed.
   CREATE FUNCTION resale_credits(of_user text, resale_delay interval) RETURNS numeric
     LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS
     $$SELECT CASE
         WHEN EXISTS (SELECT FROM public.checkouts c WHERE c.user_id = of_user AND c.is_disputed)
           OR EXISTS (SELECT FROM public.ledger_accounts a
                       WHERE a.name = 'debt:' || of_user AND a.currency = 'usd' AND a.balance < 0)
         THEN 0
         ELSE greatest(0,
           coalesce((SELECT a.balance - a.held FROM public.ledger_accounts a
                      WHERE a.name = 'user:' || of_user || ':credits' AND a.currency = 'usd'), 0)
           - coalesce((SELECT sum(c.cents * 10000::numeric - c.taken_back) FROM public.checkouts c
                        WHERE c.user_id = of_user AND c.paid_at > now() - resale_delay), 0)) END$$;

   DROP FUNCTION hold_credits(text, text, numeric, boolean, timestamptz);

   -- Holds an amount of a user's credits: granted ones first, if they may pay, and the rest of bought
   -- ones, which for a resold run were paid before the delay. The hold of granted credits has the cause with
   -- ':granted'.
   CREATE FUNCTION hold_credits(of_cause text, of_user text, wanted numeric, with_granted boolean,
                                until timestamptz, resale_delay interval DEFAULT NULL)
     RETURNS text
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
       IF resale_delay IS NULL THEN
         SELECT a.balance - a.held INTO free
           FROM public.ledger_accounts a WHERE a.name = credits AND a.currency = 'usd';
       ELSE
         free := public.resale_credits(of_user, resale_delay);
       END IF;
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
     END$$;`;

/** Bought credits pay for resold runs only some time after their payment. */
export const migration: Migration = async (context) => {
  await run(context, FUNCTIONS);
  await grantExecute(context, [
    'resale_credits(text, interval)',
    'hold_credits(text, text, numeric, boolean, timestamptz, interval)',
  ]);
};
