import { ownedThrough } from '../schema/policies.js';
import { grantExecute, protectTable, run, type Migration } from './migration.js';

const TABLE = `
   CREATE TABLE agent_emails (
     id text PRIMARY KEY,
     user_id text NOT NULL,
     agent_id text NOT NULL,
     -- The mail's id at the provider.
     provider_id text NOT NULL,
     sender text NOT NULL,
     status text NOT NULL DEFAULT 'received' CHECK (status IN
       ('received', 'asking', 'answering', 'answered', 'refused', 'skipped', 'failed')),
     reason text,
     conversation text,
     message_id text,
     -- Ids of the thread's earlier mails, for the answer's headers.
     reply_to text[] NOT NULL DEFAULT '{}',
     -- Texts, until the mail is settled.
     subject text,
     body text,
     answer text,
     -- The answer's id at the provider, which bounces and complaints name.
     answer_id text,
     -- Time of the first attempt to send the answer.
     sending_at timestamptz,
     bounced_at timestamptz,
     bounce text,
     complained_at timestamptz,
     received_at timestamptz NOT NULL DEFAULT now(),
     settled_at timestamptz,
     due_at timestamptz NOT NULL DEFAULT now(),
     FOREIGN KEY (agent_id, user_id) REFERENCES agents (id, user_id) ON DELETE CASCADE
   );
   CREATE UNIQUE INDEX agent_emails_provider_key ON agent_emails (provider_id);
   CREATE UNIQUE INDEX agent_emails_answer_key ON agent_emails (answer_id)
     WHERE answer_id IS NOT NULL;
   CREATE INDEX agent_emails_agent ON agent_emails (agent_id, received_at);
   CREATE INDEX agent_emails_user ON agent_emails (user_id, id);
   CREATE INDEX agent_emails_user_received ON agent_emails (user_id, received_at, id);
   CREATE INDEX agent_emails_due ON agent_emails (due_at) WHERE settled_at IS NULL;
   CREATE INDEX agent_emails_settled ON agent_emails (settled_at) WHERE settled_at IS NOT NULL;
   CREATE TRIGGER agent_emails_told AFTER INSERT ON agent_emails
     FOR EACH STATEMENT EXECUTE FUNCTION tell_of_row();`;

const FUNCTION = `
   -- Stores a mail to an agent, or returns why not. "may_write" says that the sender is allowed.
   CREATE FUNCTION receive_agent_email(
       of_event text, of_mail text, of_agent text, of_owner text, of_sender text, may_write boolean,
       hourly integer, most integer)
     RETURNS text
     LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS
     $$BEGIN
       IF of_agent IS NULL THEN RETURN 'recipient'; END IF;
       IF NOT may_write THEN RETURN 'sender'; END IF;
       PERFORM pg_advisory_xact_lock(hashtext('e-mails of ' || of_agent));
       -- Forged mails are bounded, too, and do not use up the owner's limit: mails of a proven sender alone
       -- have a conversation.
       IF (SELECT count(r.conversation) >= hourly OR count(*) >= most
             FROM (SELECT e.conversation FROM public.agent_emails e
                    WHERE e.agent_id = of_agent AND e.received_at > now() - interval '1 hour'
                    LIMIT most) r)
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

/** E-mails to agents. */
export const migration: Migration = async (context) => {
  await run(context, TABLE);
  await protectTable(
    context,
    'agent_emails',
    'SELECT, INSERT, UPDATE, DELETE',
    ownedThrough('user_id'),
  );
  await run(context, FUNCTION);
  await grantExecute(context, [
    'receive_agent_email(text, text, text, text, text, boolean, integer, integer)',
  ]);
};
