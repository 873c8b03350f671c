import { ownedThrough } from '../schema/policies.js';
import { grantExecute, protectTable, run, type Migration } from './migration.js';

const TABLES = `
   -- No foreign key to users: the ledger outlives them.
   CREATE TABLE ledger_accounts (
     name text NOT NULL,
     currency text NOT NULL CHECK (currency ~ '^(usd|pathusd|usdc:[1-9][0-9]*)$'),
     user_id text,
     balance numeric(38,0) NOT NULL DEFAULT 0,
     held numeric(38,0) NOT NULL DEFAULT 0 CHECK (held >= 0),
     created_at timestamptz NOT NULL DEFAULT now(),
     PRIMARY KEY (name, currency),
     CONSTRAINT ledger_accounts_not_overdrawn
       CHECK (balance >= held OR name !~ '^(user|session):')
   );
   CREATE INDEX ledger_accounts_user ON ledger_accounts (user_id) WHERE user_id IS NOT NULL;

   -- One currency for both sides, so no transfer crosses currencies.
   CREATE TABLE ledger_transfers (
     id bigserial PRIMARY KEY,
     cause text NOT NULL,
     debit text NOT NULL,
     credit text NOT NULL CHECK (credit <> debit),
     currency text NOT NULL,
     amount numeric(38,0) NOT NULL CHECK (amount > 0),
     user_id text,
     created_at timestamptz NOT NULL DEFAULT now(),
     FOREIGN KEY (debit, currency) REFERENCES ledger_accounts,
     FOREIGN KEY (credit, currency) REFERENCES ledger_accounts
   );
   CREATE UNIQUE INDEX ledger_transfers_cause_key ON ledger_transfers (cause);
   CREATE INDEX ledger_transfers_debit ON ledger_transfers (debit, currency, id);
   CREATE INDEX ledger_transfers_credit ON ledger_transfers (credit, currency, id);

   CREATE TABLE ledger_holds (
     cause text PRIMARY KEY,
     debit text NOT NULL,
     credit text NOT NULL CHECK (credit <> debit),
     currency text NOT NULL,
     amount numeric(38,0) NOT NULL CHECK (amount > 0),
     user_id text,
     state text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'posted', 'released')),
     posted numeric(38,0)
       CONSTRAINT ledger_holds_posted_within CHECK (posted BETWEEN 1 AND amount),
     expires_at timestamptz NOT NULL,
     created_at timestamptz NOT NULL DEFAULT now(),
     settled_at timestamptz,
     CHECK ((state = 'posted') = (posted IS NOT NULL)),
     CHECK ((state = 'open') = (settled_at IS NULL)),
     FOREIGN KEY (debit, currency) REFERENCES ledger_accounts,
     FOREIGN KEY (credit, currency) REFERENCES ledger_accounts
   );
   CREATE INDEX ledger_holds_open ON ledger_holds (expires_at) WHERE state = 'open';
   CREATE INDEX ledger_holds_held ON ledger_holds (debit, currency) WHERE state = 'open';
   CREATE INDEX ledger_holds_settled ON ledger_holds (settled_at) WHERE state <> 'open';`;

/** Functions that only other functions of the ledger call. */
const STEPS = `
   -- Refuses a debit of an account that is not of the transaction's user.
   CREATE FUNCTION check_ledger_access(of_account text) RETURNS void
     LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS
     $$DECLARE
       account_of text := current_setting('app.user_id', true);
     BEGIN
       IF current_setting('app.platform', true) = 'on' OR account_of <> ''
         AND starts_with(of_account, 'user:' || account_of || ':') THEN RETURN; END IF;
       RAISE EXCEPTION 'the account is not of the tenant' USING ERRCODE = 'insufficient_privilege';
     END$$;

   -- Makes the accounts that do not exist. Here and below, accounts are made and locked in the order
   -- of their names, so that no two calls deadlock.
   CREATE FUNCTION make_ledger_accounts(names text[], of_currency text) RETURNS void
     LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS
     $$BEGIN
       IF cardinality(names) = (SELECT count(*) FROM public.ledger_accounts a
                                 WHERE a.name = ANY (names) AND a.currency = of_currency) THEN
         RETURN;
       END IF;
       INSERT INTO public.ledger_accounts (name, currency, user_id)
         SELECT n, of_currency, CASE WHEN n LIKE 'user:%' THEN split_part(n, ':', 2) END
           FROM unnest(names) n ORDER BY n COLLATE "C" ON CONFLICT DO NOTHING;
     END$$;

   -- Locks accounts and returns whether the first has enough free balance.
   CREATE FUNCTION lock_ledger_accounts(names text[], of_currency text, wanted numeric)
     RETURNS boolean
     LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS
     $$BEGIN
       PERFORM FROM public.ledger_accounts a
        WHERE a.name = ANY (names) AND a.currency = of_currency
        ORDER BY a.name COLLATE "C" FOR NO KEY UPDATE;
       RETURN EXISTS (
         SELECT FROM public.ledger_accounts a
          WHERE a.name = names[1] AND a.currency = of_currency
            AND (a.balance - a.held >= wanted OR a.name !~ '^(user|session):'));
     END$$;

   -- Moves an amount between two locked accounts and takes "was_held" off the hold of the first.
   -- Returns false if the cause has a transfer already.
   CREATE FUNCTION book_transfer(of_cause text, from_account text, to_account text,
                                 of_currency text, moved numeric, was_held numeric)
     RETURNS boolean
     LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS
     $$BEGIN
       INSERT INTO public.ledger_transfers (cause, debit, credit, currency, amount, user_id)
         SELECT of_cause, from_account, to_account, of_currency, moved, coalesce(d.user_id, c.user_id)
           FROM public.ledger_accounts d, public.ledger_accounts c
          WHERE d.name = from_account AND d.currency = of_currency
            AND c.name = to_account AND c.currency = of_currency
         ON CONFLICT (cause) DO NOTHING;
       IF NOT FOUND THEN RETURN false; END IF;
       UPDATE public.ledger_accounts a SET balance = a.balance - moved, held = a.held - was_held
        WHERE a.name = from_account AND a.currency = of_currency;
       UPDATE public.ledger_accounts a SET balance = a.balance + moved
        WHERE a.name = to_account AND a.currency = of_currency;
       RETURN true;
     END$$;`;

/** Functions that the serving role calls, because it may not write to the tables. */
const OPERATIONS = `
   -- Each function below returns its outcome as one word.
   CREATE FUNCTION ledger_transfer(of_cause text, from_account text, to_account text,
                                   of_currency text, moved numeric) RETURNS text
     LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
     $$DECLARE
       is_covered boolean;
       known public.ledger_transfers;
     BEGIN
       PERFORM public.check_ledger_access(from_account);
       PERFORM public.make_ledger_accounts(ARRAY[from_account, to_account], of_currency);
       is_covered :=
         public.lock_ledger_accounts(ARRAY[from_account, to_account], of_currency, moved);
       SELECT * INTO known FROM public.ledger_transfers t WHERE t.cause = of_cause;
       IF FOUND THEN
         RETURN CASE
           WHEN (known.debit, known.credit, known.currency, known.amount)
              = (from_account, to_account, of_currency, moved) THEN 'known'
           ELSE 'other' END;
       END IF;
       IF NOT is_covered THEN RETURN 'insufficient'; END IF;
       IF public.book_transfer(of_cause, from_account, to_account, of_currency, moved, 0) THEN
         RETURN 'made';
       END IF;
       RETURN 'other';
     END$$;

   CREATE FUNCTION ledger_hold(of_cause text, from_account text, to_account text,
                               of_currency text, wanted numeric, until timestamptz) RETURNS text
     LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
     $$DECLARE
       is_covered boolean;
       known public.ledger_holds;
     BEGIN
       PERFORM public.check_ledger_access(from_account);
       PERFORM public.make_ledger_accounts(ARRAY[from_account, to_account], of_currency);
       is_covered := public.lock_ledger_accounts(ARRAY[from_account], of_currency, wanted);
       SELECT * INTO known FROM public.ledger_holds h WHERE h.cause = of_cause;
       IF FOUND THEN
         RETURN CASE
           WHEN (known.debit, known.credit, known.currency, known.amount)
              = (from_account, to_account, of_currency, wanted) THEN known.state
           ELSE 'other' END;
       END IF;
       IF NOT is_covered THEN RETURN 'insufficient'; END IF;
       INSERT INTO public.ledger_holds
           (cause, debit, credit, currency, amount, user_id, expires_at)
         SELECT of_cause, from_account, to_account, of_currency, wanted, a.user_id, until
           FROM public.ledger_accounts a
          WHERE a.name = from_account AND a.currency = of_currency
         ON CONFLICT (cause) DO NOTHING;
       IF NOT FOUND THEN RETURN 'other'; END IF;
       UPDATE public.ledger_accounts a SET held = a.held + wanted
        WHERE a.name = from_account AND a.currency = of_currency;
       RETURN 'open';
     END$$;

   -- Moves the held amount, or a part of it, and frees the rest.
   CREATE FUNCTION ledger_post(of_cause text, part numeric) RETURNS text
     LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
     $$DECLARE
       known public.ledger_holds;
       moved numeric;
     BEGIN
       SELECT * INTO known FROM public.ledger_holds h WHERE h.cause = of_cause FOR UPDATE;
       IF NOT FOUND THEN RETURN 'unknown'; END IF;
       PERFORM public.check_ledger_access(known.debit);
       moved := coalesce(part, known.amount);
       IF known.state = 'posted' AND known.posted <> moved THEN RETURN 'other'; END IF;
       IF known.state <> 'open' THEN RETURN known.state; END IF;
       -- Checked before the balance, because a too large part would look like an overdraft.
       IF moved NOT BETWEEN 1 AND known.amount THEN
         RAISE EXCEPTION 'only what is held is posted: ledger_holds_posted_within'
           USING ERRCODE = 'check_violation', CONSTRAINT = 'ledger_holds_posted_within';
       END IF;
       PERFORM public.lock_ledger_accounts(
         ARRAY[known.debit, known.credit], known.currency, 0);
       IF NOT public.book_transfer(of_cause, known.debit, known.credit, known.currency, moved,
                                   known.amount) THEN
         RETURN 'other';
       END IF;
       UPDATE public.ledger_holds h SET state = 'posted', posted = moved, settled_at = now()
        WHERE h.cause = of_cause;
       RETURN 'posted';
     END$$;

   CREATE FUNCTION ledger_release(of_cause text) RETURNS text
     LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
     $$DECLARE
       known public.ledger_holds;
     BEGIN
       SELECT * INTO known FROM public.ledger_holds h WHERE h.cause = of_cause FOR UPDATE;
       IF NOT FOUND THEN RETURN 'unknown'; END IF;
       PERFORM public.check_ledger_access(known.debit);
       IF known.state <> 'open' THEN RETURN known.state; END IF;
       UPDATE public.ledger_accounts a SET held = a.held - known.amount
        WHERE a.name = known.debit AND a.currency = known.currency;
       UPDATE public.ledger_holds h SET state = 'released', settled_at = now()
        WHERE h.cause = of_cause;
       RETURN 'released';
     END$$;

   -- Releases up to "most" expired holds and returns how many.
   CREATE FUNCTION release_ended_holds(most integer) RETURNS integer
     LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
     $$DECLARE
       ended text[] := ARRAY(
         SELECT h.cause FROM public.ledger_holds h
          WHERE h.state = 'open' AND h.expires_at < now()
          ORDER BY h.expires_at LIMIT most FOR UPDATE SKIP LOCKED);
       one record;
     BEGIN
       FOR one IN
         SELECT h.debit, h.currency, sum(h.amount) AS amount FROM public.ledger_holds h
          WHERE h.cause = ANY (ended)
          GROUP BY 1, 2 ORDER BY h.debit COLLATE "C", h.currency
       LOOP
         UPDATE public.ledger_accounts a SET held = a.held - one.amount
          WHERE a.name = one.debit AND a.currency = one.currency;
       END LOOP;
       UPDATE public.ledger_holds h SET state = 'released', settled_at = now()
        WHERE h.cause = ANY (ended);
       RETURN cardinality(ended);
     END$$;

   -- Deletes holds settled over 7 days ago, when nothing retries them. Their transfers stay.
   CREATE FUNCTION remove_settled_holds(most integer) RETURNS integer
     LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
     $$WITH gone AS (
         DELETE FROM public.ledger_holds h WHERE h.cause = ANY (ARRAY(
           SELECT s.cause FROM public.ledger_holds s
            WHERE s.state <> 'open' AND s.settled_at < now() - interval '7 days'
            ORDER BY s.settled_at LIMIT most FOR UPDATE SKIP LOCKED))
          RETURNING 1)
       SELECT count(*)::integer FROM gone$$;`;

/** Accounts with their balances, transfers between accounts, and holds on accounts. */
export const migration: Migration = async (context) => {
  await run(context, TABLES);
  const owned = ownedThrough('user_id');
  for (const table of ['ledger_accounts', 'ledger_transfers', 'ledger_holds']) {
    await protectTable(context, table, 'SELECT', owned);
  }
  await run(context, STEPS);
  await run(context, OPERATIONS);
  await grantExecute(context, [
    'ledger_transfer(text, text, text, text, numeric)',
    'ledger_hold(text, text, text, text, numeric, timestamptz)',
    'ledger_post(text, numeric)',
    'ledger_release(text)',
    'release_ended_holds(integer)',
    'remove_settled_holds(integer)',
  ]);
  // The platform's account that pays the credits of referrals.
  await run(context, `INSERT INTO ledger_accounts (name, currency) VALUES ('referrals', 'usd');`);
};
