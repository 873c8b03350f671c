import { ownedThrough, PLATFORM } from '../schema/policies.js';
import { grantExecute, protectTable, run, type Migration } from './migration.js';

const TABLES = `
   -- No foreign key to users: refunds and disputes follow a payment for months.
   CREATE TABLE checkouts (
     id text PRIMARY KEY,
     user_id text NOT NULL,
     cents integer NOT NULL CHECK (cents > 0),
     currency text NOT NULL,
     session_id text,
     payment_intent text,
     taken_back numeric(38,0) NOT NULL DEFAULT 0,
     is_disputed boolean NOT NULL DEFAULT false,
     created_at timestamptz NOT NULL DEFAULT now(),
     paid_at timestamptz,
     CONSTRAINT checkouts_taken_back_within CHECK (taken_back BETWEEN 0 AND cents * 10000::numeric)
   );
   CREATE UNIQUE INDEX checkouts_session_key ON checkouts (session_id);
   CREATE UNIQUE INDEX checkouts_payment_key ON checkouts (payment_intent);
   CREATE INDEX checkouts_user ON checkouts (user_id, id);
   CREATE INDEX checkouts_unpaid ON checkouts (created_at) WHERE paid_at IS NULL;

   CREATE TABLE processor_events (
     id text PRIMARY KEY,
     event_id text NOT NULL,
     type text NOT NULL,
     payment_intent text,
     fact jsonb NOT NULL,
     happened_at timestamptz NOT NULL,
     received_at timestamptz NOT NULL DEFAULT now(),
     due_at timestamptz NOT NULL DEFAULT now(),
     applied_at timestamptz,
     outcome text CHECK (outcome IN ('booked', 'unpaid', 'unmatched')),
     CHECK ((applied_at IS NULL) = (outcome IS NULL))
   );
   CREATE UNIQUE INDEX processor_events_event_key ON processor_events (event_id);
   CREATE INDEX processor_events_waiting ON processor_events (due_at) WHERE applied_at IS NULL;
   CREATE INDEX processor_events_payment ON processor_events (payment_intent)
     WHERE payment_intent IS NOT NULL;
   CREATE INDEX processor_events_unbooked ON processor_events (applied_at)
     WHERE outcome <> 'booked';

   CREATE TRIGGER processor_events_told AFTER INSERT ON processor_events
     FOR EACH STATEMENT EXECUTE FUNCTION tell_of_row();`;

const DEBTS = `
   -- As before, and a debt belongs to its user as well.
   CREATE OR REPLACE FUNCTION make_ledger_accounts(names text[], of_currency text) RETURNS void
     LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS
     $$BEGIN
       IF cardinality(names) = (SELECT count(*) FROM public.ledger_accounts a
                                 WHERE a.name = ANY (names) AND a.currency = of_currency) THEN
         RETURN;
       END IF;
       INSERT INTO public.ledger_accounts (name, currency, user_id)
         SELECT n, of_currency, CASE WHEN n ~ '^(user|debt):' THEN split_part(n, ':', 2) END
           FROM unnest(names) n ORDER BY n COLLATE "C" ON CONFLICT DO NOTHING;
     END$$;

   -- Pays a user's debt from free bought credits, as far as they reach, and returns the amount.
   CREATE FUNCTION pay_debt(of_cause text, of_user text) RETURNS numeric
     LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
     $$DECLARE
       credits text := 'user:' || of_user || ':credits';
       debt text := 'debt:' || of_user;
       moved numeric;
     BEGIN
       PERFORM public.check_ledger_access(debt);
       PERFORM public.lock_ledger_accounts(ARRAY[credits, debt], 'usd', 0);
       SELECT least(c.balance - c.held, -d.balance) INTO moved
         FROM public.ledger_accounts c, public.ledger_accounts d
        WHERE c.name = credits AND d.name = debt AND c.currency = 'usd' AND d.currency = 'usd';
       IF moved IS NULL OR moved <= 0 THEN RETURN 0; END IF;
       IF NOT public.book_transfer(of_cause, credits, debt, 'usd', moved, 0) THEN
         RAISE EXCEPTION '% is the cause of another transfer', of_cause
           USING ERRCODE = 'unique_violation';
       END IF;
       RETURN moved;
     END$$;`;

/** Checkouts of credits, the payment processor's events, and debts of users whose payment was taken back. */
export const migration: Migration = async (context) => {
  await run(context, TABLES);
  const grants = 'SELECT, INSERT, UPDATE, DELETE';
  await protectTable(context, 'checkouts', grants, ownedThrough('user_id'));
  await protectTable(context, 'processor_events', grants, PLATFORM);
  await run(context, DEBTS);
  await grantExecute(context, ['pay_debt(text, text)']);
};
