import { ownedThrough } from '../schema/policies.js';
import { protectTable, run, type Migration } from './migration.js';

/** Payments that the x402 gateway is asked to make. */
export const migration: Migration = async (context) => {
  await run(
    context,
    `CREATE TABLE x402_payments (
       -- The key under which the payment is sent, derived from the caller's Idempotency-Key.
       id text PRIMARY KEY,
       -- Null once the account is deleted, so that its payments still count for all.
       user_id text REFERENCES users ON DELETE SET NULL,
       agent_id text,
       amount bigint NOT NULL CHECK (amount > 0),
       currency text NOT NULL,
       recipient text,
       endpoint text,
       method text,
       state text NOT NULL DEFAULT 'pending'
         CHECK (state IN ('pending', 'paid', 'refused', 'failed', 'unknown')),
       attempt integer NOT NULL DEFAULT 1,
       created_at timestamptz NOT NULL DEFAULT now(),
       sent_at timestamptz NOT NULL DEFAULT now(),
       ended_at timestamptz
     );
     CREATE INDEX x402_payments_day ON x402_payments (sent_at, amount);
     CREATE INDEX x402_payments_user ON x402_payments (user_id, sent_at);
     CREATE INDEX x402_payments_pending ON x402_payments (sent_at) WHERE state = 'pending';
     CREATE TRIGGER x402_payments_need_account AFTER INSERT ON x402_payments
       FOR EACH ROW EXECUTE FUNCTION refuse_without_account();

     CREATE FUNCTION forget_x402_payer() RETURNS trigger
       LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS
       $$BEGIN
         NEW.agent_id := NULL;
         NEW.recipient := NULL;
         NEW.endpoint := NULL;
         NEW.method := NULL;
         RETURN NEW;
       END$$;
     CREATE TRIGGER x402_payments_forgotten BEFORE UPDATE OF user_id ON x402_payments
       FOR EACH ROW WHEN (OLD.user_id IS NOT NULL AND NEW.user_id IS NULL)
       EXECUTE FUNCTION forget_x402_payer();

     -- The audit log keeps a deleted account's id, but not its email.
     CREATE OR REPLACE FUNCTION refuse_audit_update() RETURNS trigger
       LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS
       $$BEGIN
         IF OLD.action = 'sign-in.failed' AND NEW.subject = '(erased)'
           AND to_jsonb(NEW) - 'subject' = to_jsonb(OLD) - 'subject' THEN RETURN NEW; END IF;
         IF OLD.action = 'x402.pay' AND NEW.detail = OLD.detail - 'email'
           AND to_jsonb(NEW) - 'detail' = to_jsonb(OLD) - 'detail' THEN RETURN NEW; END IF;
         RAISE EXCEPTION 'the audit log is append-only' USING ERRCODE = 'insufficient_privilege';
       END$$;

     CREATE FUNCTION forget_x402_email() RETURNS trigger
       LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS
       $$BEGIN
         UPDATE public.audit_log SET detail = detail - 'email'
          WHERE user_id = OLD.id AND action = 'x402.pay';
         RETURN NULL;
       END$$;
     CREATE TRIGGER users_forget_x402_email AFTER DELETE ON users
       FOR EACH ROW EXECUTE FUNCTION forget_x402_email();`,
  );
  await protectTable(
    context,
    'x402_payments',
    'SELECT, INSERT, DELETE, UPDATE (state, attempt, sent_at, ended_at)',
    ownedThrough('user_id'),
  );
};
