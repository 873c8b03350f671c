import { ownedThrough } from '../schema/policies.js';
import { grantExecute, protectTable, run, type Migration } from './migration.js';

/** Writes that an account refuses from the start of its deletion: table, event and condition. */
const REFUSED = [
  ['sessions', 'INSERT', 'true'],
  ['identities', 'INSERT', 'true'],
  ['api_keys', 'INSERT', 'true'],
  ['agents', 'INSERT', 'true'],
  ['heartbeats', 'INSERT OR UPDATE OF enabled', 'NEW.enabled'],
] as const;

/** Accounts that their owners delete. */
export const migration: Migration = async (context) => {
  await run(
    context,
    `CREATE TABLE account_deletions (
       user_id text PRIMARY KEY REFERENCES users ON DELETE CASCADE,
       request_id text NOT NULL,
       requested_at timestamptz NOT NULL DEFAULT now(),
       due_at timestamptz NOT NULL DEFAULT now()
     );`,
  );
  await protectTable(
    context,
    'account_deletions',
    'SELECT, INSERT, UPDATE (due_at)',
    ownedThrough('user_id'),
  );

  await run(
    context,
    `-- A deletion begins by locking the row of the account. An earlier write holds that lock, so the
     -- deletion waits for it and sees it; a later write sees the deletion here. Callers get the error of
     -- an account that no longer exists.
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
     ${REFUSED.map(
       ([table, event, condition]) =>
         `CREATE TRIGGER ${table}_need_account AFTER ${event} ON ${table}
            FOR EACH ROW WHEN (${condition}) EXECUTE FUNCTION refuse_without_account();`,
     ).join('\n')}

     -- Erases an account whose deletion has begun and whose agents are removed, up to "most" rows at a
     -- time. Returns how many, and 0 when the account no longer exists. Rows that refer to the account
     -- go with it; usage, the ledger and the audit log keep its id.
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
  await grantExecute(context, ['erase_account(text, integer)']);
};
