import { PLATFORM } from '../schema/policies.js';
import { grantExecute, protectTable, run, type Migration } from './migration.js';

const FUNCTIONS = [
  'hold_debit(text, text, numeric, timestamptz)',
  'post_debit(text, text, text, text, numeric, interval)',
] as const;

/** What was delivered for payment sessions, and their debits: a statement for each step of one. */
export const migration: Migration = {
  async up(context) {
    await run(
      context,
      `CREATE TABLE payment_vouchers (
         id text PRIMARY KEY,
         session_id text NOT NULL REFERENCES payment_sessions,
         sequence bigint NOT NULL CHECK (sequence > 0),
         amount numeric(24,0) NOT NULL CHECK (amount > 0),
         -- What was delivered up to it, itself included.
         cumulative numeric(24,0) NOT NULL CHECK (cumulative >= amount),
         plugin text NOT NULL,
         action text NOT NULL,
         created_at timestamptz NOT NULL DEFAULT now()
       );
       CREATE UNIQUE INDEX payment_vouchers_sequence ON payment_vouchers (session_id, sequence);`,
    );
    await protectTable(context, 'payment_vouchers', 'SELECT', PLATFORM);
    await run(
      context,
      `-- Whoever debits a session locks its row, then a hold, then accounts. So no debit is begun once
       -- the session is settling, and whoever has made it so knows what is held from there on. It is
       -- the platform that debits, whoever's transaction it is.
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

       -- Posts what is held, and writes its voucher: again it tells the same.
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
         END$$;`,
    );
    for (const signature of FUNCTIONS) await grantExecute(context, signature);
  },

  async down(context) {
    await run(
      context,
      `${FUNCTIONS.map((signature) => `DROP FUNCTION ${signature};`).join('\n')}
       DROP TABLE payment_vouchers;`,
    );
  },
};
