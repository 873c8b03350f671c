import { ownedThrough } from '../schema/policies.js';
import { grantExecute, protectTable, run, type Migration } from './migration.js';

/** Where nothing is added any more for an account that is being deleted, and by what. */
const CLOSED = [
  ['sessions', 'INSERT', 'true'],
  ['identities', 'INSERT', 'true'],
  ['api_keys', 'INSERT', 'true'],
  ['agents', 'INSERT', 'true'],
  ['heartbeats', 'INSERT OR UPDATE OF enabled', 'NEW.enabled'],
] as const;

/** Accounts that their owners delete. */
export const migration: Migration = {
  async up(context) {
    await run(
      context,
      `CREATE TABLE account_deletions (
         user_id text PRIMARY KEY REFERENCES users ON DELETE CASCADE,
         request_id text NOT NULL,
         requested_at timestamptz NOT NULL DEFAULT now(),
         looked_at timestamptz
       );

       -- What was credited outlives who it was credited to, as what was used does.
       ALTER TABLE credit_entries DROP CONSTRAINT credit_entries_user_id_fkey;

       CREATE INDEX audit_log_user ON audit_log (user_id, id);
       CREATE INDEX audit_log_failed_sign_ins ON audit_log (subject)
         WHERE action = 'sign-in.failed';`,
    );
    await protectTable(
      context,
      'account_deletions',
      'SELECT, INSERT, UPDATE (looked_at)',
      ownedThrough('user_id'),
    );
    await run(
      context,
      `-- Whoever begins a deletion holds the account's row: what comes before is waited for and seen
       -- there, what comes after sees the deletion here. To the outside it is as if the account
       -- were gone already.
       CREATE FUNCTION refuse_without_account() RETURNS trigger
         LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS
         $$BEGIN
           PERFORM FROM public.users WHERE id = NEW.user_id FOR KEY SHARE;
           IF EXISTS (SELECT FROM public.account_deletions WHERE user_id = NEW.user_id) THEN
             RAISE EXCEPTION 'the account is being deleted'
               USING ERRCODE = 'foreign_key_violation', CONSTRAINT = 'account_is_there';
           END IF;
           RETURN NULL;
         END$$;
       ${CLOSED.map(
         ([table, event, condition]) =>
           `CREATE TRIGGER ${table}_need_account AFTER ${event} ON ${table}
              FOR EACH ROW WHEN (${condition}) EXECUTE FUNCTION refuse_without_account();`,
       ).join('\n')}

       -- Nobody changes the audit log; but whose sign-in failed is forgotten with their account.
       CREATE FUNCTION refuse_audit_update() RETURNS trigger
         LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS
         $$BEGIN
           IF OLD.action = 'sign-in.failed' AND NEW.subject = '(erased)'
             AND to_jsonb(NEW) - 'subject' = to_jsonb(OLD) - 'subject' THEN RETURN NEW; END IF;
           RAISE EXCEPTION 'the audit log is append-only' USING ERRCODE = 'insufficient_privilege';
         END$$;
       DROP TRIGGER audit_log_append_only ON audit_log;
       CREATE TRIGGER audit_log_append_only BEFORE TRUNCATE ON audit_log
         FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();
       CREATE TRIGGER audit_log_unchanged BEFORE UPDATE ON audit_log
         FOR EACH ROW EXECUTE FUNCTION refuse_audit_update();

       -- Erases an account that its owner deletes, and of whose agents nothing is left, up to so many
       -- rows at a time: how many, and 0 when it is no more. What refers to it goes with it. Usage,
       -- the ledger and the audit log keep its id.
       CREATE FUNCTION erase_account(account text, most integer) RETURNS integer
         LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
         $$DECLARE
           its_email text;
           its_agents text[];
           part text;
           done integer;
         BEGIN
           SELECT u.email INTO its_email
             FROM public.users u JOIN public.account_deletions d ON d.user_id = u.id
            WHERE u.id = account FOR UPDATE;
           IF NOT FOUND THEN RETURN 0; END IF;
           IF EXISTS (SELECT FROM public.agents WHERE user_id = account AND deleted_at IS NULL) THEN
             RAISE EXCEPTION 'agents of the account are still there' USING ERRCODE = 'restrict_violation';
           END IF;
           its_agents := ARRAY(SELECT id FROM public.agents WHERE user_id = account);
           FOREACH part IN ARRAY ARRAY['messages', 'watchdog_transitions', 'operations'] LOOP
             EXECUTE format(
               'DELETE FROM public.%1$I WHERE id = ANY (ARRAY(
                  SELECT id FROM public.%1$I WHERE agent_id = ANY ($1) LIMIT $2))', part)
               USING its_agents, most;
             GET DIAGNOSTICS done = ROW_COUNT;
             IF done > 0 THEN RETURN done; END IF;
           END LOOP;
           DELETE FROM public.agents WHERE user_id = account;
           DELETE FROM public.notifications
            WHERE user_id = account OR agent_id = ANY (its_agents);
           DELETE FROM public.idempotency_keys
            WHERE caller IN (account, 'internal:' || account, 'claimed:' || account);
           DELETE FROM public.admin_links WHERE email = its_email;
           DELETE FROM public.mails WHERE address = its_email;
           DELETE FROM public.farcaster_tokens WHERE fid = ANY (ARRAY(
             SELECT subject::bigint FROM public.identities
              WHERE user_id = account AND kind = 'farcaster'));
           UPDATE public.audit_log SET subject = '(erased)'
            WHERE action = 'sign-in.failed' AND subject = its_email;
           DELETE FROM public.users WHERE id = account;
           RETURN 1;
         END$$;`,
    );
    await grantExecute(context, 'erase_account(text, integer)');
  },

  async down(context) {
    await run(
      context,
      `DROP FUNCTION erase_account(text, integer);
       DROP TRIGGER audit_log_unchanged ON audit_log;
       DROP TRIGGER audit_log_append_only ON audit_log;
       CREATE TRIGGER audit_log_append_only BEFORE UPDATE OR TRUNCATE ON audit_log
         FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();
       DROP FUNCTION refuse_audit_update();
       ${CLOSED.map(([table]) => `DROP TRIGGER ${table}_need_account ON ${table};`).join('\n')}
       DROP FUNCTION refuse_without_account();
       DROP INDEX audit_log_failed_sign_ins, audit_log_user;
       DELETE FROM credit_entries c WHERE NOT EXISTS (SELECT FROM users u WHERE u.id = c.user_id);
       ALTER TABLE credit_entries ADD CONSTRAINT credit_entries_user_id_fkey
         FOREIGN KEY (user_id) REFERENCES users ON DELETE RESTRICT;
       DROP TABLE account_deletions;`,
    );
  },
};
