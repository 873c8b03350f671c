import { grantExecute, run, type Migration } from './migration.js';

const PARAMETERS = 'text, text, text, text, text, boolean, integer, integer';

const FUNCTION = `
   DROP FUNCTION receive_agent_email(${PARAMETERS});
   -- Stores a mail to an agent, or returns why not. "may_write" says that the sender is allowed.
   CREATE FUNCTION receive_agent_email(
       of_event text, of_mail text, of_agent text, of_owner text, of_sender text, may_write boolean,
       hourly integer, unread integer)
     RETURNS text
     LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS
     $$BEGIN
       IF of_agent IS NULL THEN RETURN 'recipient'; END IF;
       IF NOT may_write THEN RETURN 'sender'; END IF;
       PERFORM pg_advisory_xact_lock(hashtext('e-mails of ' || of_agent));
       -- Mails of a proven sender alone have a conversation. Forged mails count until they are read.
       IF (SELECT count(*) FROM public.agent_emails e
            WHERE e.agent_id = of_agent AND e.conversation IS NOT NULL
              AND e.received_at > now() - interval '1 hour') >= hourly
          OR (SELECT count(*) FROM public.agent_emails e
               WHERE e.agent_id = of_agent AND e.status = 'received') >= unread
       THEN
         RETURN CASE WHEN EXISTS (SELECT FROM public.provider_webhooks w
                                   WHERE w.kind = 'email' AND w.id = of_event)
                     THEN 'duplicate' ELSE 'rate' END;
       END IF;
       WITH fresh AS (
         INSERT INTO public.provider_webhooks (kind, id) VALUES ('email', of_event)
           ON CONFLICT DO NOTHING RETURNING id)
       INSERT INTO public.agent_emails (id, user_id, agent_id, provider_id, sender)
         SELECT gen_random_uuid()::text, of_owner, of_agent, of_mail, of_sender FROM fresh
         ON CONFLICT DO NOTHING;
       RETURN CASE WHEN FOUND THEN 'stored' ELSE 'duplicate' END;
     END$$;`;

/** Bounds of mails that are not read yet, and of mails that asked nobody. */
export const migration: Migration = async (context) => {
  await run(
    context,
    `CREATE INDEX agent_emails_unread ON agent_emails (agent_id) WHERE status = 'received';
     CREATE INDEX agent_emails_unasked ON agent_emails (agent_id, received_at)
       WHERE settled_at IS NOT NULL AND conversation IS NULL;
     ${FUNCTION}`,
  );
  await grantExecute(context, [`receive_agent_email(${PARAMETERS})`]);
};
