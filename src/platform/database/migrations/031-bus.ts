import { ownedThrough, seenByBoth } from '../schema/policies.js';
import { protectTable, run, servingRole, type Migration } from './migration.js';

const TABLES = `
   -- Set when a wallet was brought by a signature that only a contract verifies.
   ALTER TABLE wallets ADD COLUMN is_contract boolean NOT NULL DEFAULT false;

   -- Webhooks of agents. Without "url" the row has only the state of the agent's dead letters.
   CREATE TABLE bus_webhooks (
     agent_id text PRIMARY KEY,
     user_id text NOT NULL,
     url text,
     sealed_secret text,
     -- Agents and owners whose messages are refused.
     refuses text[] NOT NULL DEFAULT '{}',
     dead_in_row integer NOT NULL DEFAULT 0,
     paused_at timestamptz,
     mailed_at timestamptz,
     created_at timestamptz NOT NULL DEFAULT now(),
     CHECK ((url IS NULL) = (sealed_secret IS NULL)),
     FOREIGN KEY (agent_id, user_id) REFERENCES agents (id, user_id) ON DELETE CASCADE
   );
   CREATE INDEX bus_webhooks_user ON bus_webhooks (user_id);

   -- Stored bytes of an owner, as sender and as recipient, and messages sent on a UTC day.
   CREATE TABLE bus_counts (
     user_id text PRIMARY KEY REFERENCES users ON DELETE CASCADE,
     bytes bigint NOT NULL DEFAULT 0,
     day date,
     sent integer NOT NULL DEFAULT 0
   );

   CREATE TABLE bus_messages (
     id bigserial PRIMARY KEY,
     message_id text NOT NULL,
     action text NOT NULL,
     service text NOT NULL CHECK (service IN ('negotiation', 'amplification')),
     from_agent text NOT NULL,
     from_user text NOT NULL,
     to_agent text NOT NULL,
     to_user text NOT NULL,
     -- Digest of the signed text, by which a repetition is recognized.
     digest text NOT NULL,
     sealed text NOT NULL,
     status text NOT NULL DEFAULT 'queued' CHECK (status IN ('queued', 'delivered', 'dead')),
     -- The step in its thread; null if the message takes none.
     step text CHECK (step IN ('taken', 'illegal')),
     attempts jsonb NOT NULL DEFAULT '[]',
     routed_at timestamptz,
     tried_at timestamptz,
     delivered_at timestamptz,
     -- 'infinity' until the message before it, of the same pair, was tried.
     due_at timestamptz NOT NULL DEFAULT now(),
     created_at timestamptz NOT NULL DEFAULT now(),
     FOREIGN KEY (from_agent, from_user) REFERENCES agents (id, user_id) ON DELETE CASCADE,
     FOREIGN KEY (to_agent, to_user) REFERENCES agents (id, user_id) ON DELETE CASCADE
   );
   CREATE UNIQUE INDEX bus_messages_sender_key ON bus_messages (from_agent, message_id);
   CREATE INDEX bus_messages_recipient ON bus_messages (to_agent, id);
   CREATE INDEX bus_messages_waiting ON bus_messages (to_agent, id) WHERE status = 'queued';
   CREATE INDEX bus_messages_message ON bus_messages (message_id);
   CREATE INDEX bus_messages_from_user ON bus_messages (from_user, id);
   CREATE INDEX bus_messages_to_user ON bus_messages (to_user, id);
   CREATE INDEX bus_messages_created ON bus_messages (created_at);
   CREATE INDEX bus_messages_due ON bus_messages (due_at) WHERE status = 'queued';
   CREATE INDEX bus_messages_untried ON bus_messages (from_agent, to_agent, id)
     WHERE tried_at IS NULL;

   -- One thread for both parties and a booking; agent_a is the lesser id.
   CREATE TABLE bus_threads (
     agent_a text NOT NULL,
     user_a text NOT NULL,
     agent_b text NOT NULL,
     user_b text NOT NULL,
     booking_id text NOT NULL,
     state text NOT NULL
       CHECK (state IN ('requested', 'countered', 'accepted', 'declined', 'cancelled')),
     last_by text NOT NULL,
     sealed_terms text NOT NULL,
     created_at timestamptz NOT NULL DEFAULT now(),
     updated_at timestamptz NOT NULL DEFAULT now(),
     PRIMARY KEY (agent_a, agent_b, booking_id),
     FOREIGN KEY (agent_a, user_a) REFERENCES agents (id, user_id) ON DELETE CASCADE,
     FOREIGN KEY (agent_b, user_b) REFERENCES agents (id, user_id) ON DELETE CASCADE
   );
   CREATE INDEX bus_threads_second ON bus_threads (agent_b);
   CREATE INDEX bus_threads_updated ON bus_threads (updated_at);

   CREATE TABLE bus_amplifications (
     from_agent text NOT NULL,
     from_user text NOT NULL,
     to_agent text NOT NULL,
     to_user text NOT NULL,
     post_id text NOT NULL,
     channel text NOT NULL,
     last_action text NOT NULL,
     messages integer NOT NULL DEFAULT 1,
     created_at timestamptz NOT NULL DEFAULT now(),
     updated_at timestamptz NOT NULL DEFAULT now(),
     PRIMARY KEY (from_agent, to_agent, post_id, channel),
     FOREIGN KEY (from_agent, from_user) REFERENCES agents (id, user_id) ON DELETE CASCADE,
     FOREIGN KEY (to_agent, to_user) REFERENCES agents (id, user_id) ON DELETE CASCADE
   );
   CREATE INDEX bus_amplifications_recipient ON bus_amplifications (to_agent);
   CREATE INDEX bus_amplifications_updated ON bus_amplifications (updated_at);

   -- Texts that the process with the wallets' keys is to sign.
   CREATE TABLE bus_signatures (
     id text PRIMARY KEY,
     user_id text NOT NULL,
     agent_id text NOT NULL,
     sealed_text text NOT NULL,
     signature text,
     due_at timestamptz NOT NULL DEFAULT now(),
     created_at timestamptz NOT NULL DEFAULT now(),
     FOREIGN KEY (agent_id, user_id) REFERENCES agents (id, user_id) ON DELETE CASCADE
   );
   CREATE INDEX bus_signatures_due ON bus_signatures (due_at) WHERE signature IS NULL;
   CREATE INDEX bus_signatures_created ON bus_signatures (created_at);
   CREATE INDEX bus_signatures_agent ON bus_signatures (agent_id);`;

const FUNCTIONS = `
   -- Stores a message, or says why not; "current" is the amount that counts toward the refusing limit.
   -- Lock order: rows of bus_counts by user, then messages.
   CREATE FUNCTION accept_bus_message(
       of_from text, of_user text, of_to text, of_message text, of_digest text, of_action text,
       of_service text, of_sealed text, daily integer, hourly integer, most bigint,
       OUT outcome text, OUT current bigint)
     LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS
     $$DECLARE
       today date := (now() AT TIME ZONE 'UTC')::date;
       new_bytes integer := octet_length(of_sealed);
       recipient text;
       known text;
       counts record;
     BEGIN
       SELECT m.digest INTO known FROM public.bus_messages m
        WHERE m.from_agent = of_from AND m.message_id = of_message;
       IF FOUND THEN
         outcome := CASE WHEN known = of_digest THEN 'known' ELSE 'other' END;
         RETURN;
       END IF;
       SELECT a.user_id INTO recipient FROM public.agents a
        WHERE a.id = of_to AND a.desired <> 'deleted' AND NOT EXISTS (
          SELECT FROM public.bus_webhooks w
           WHERE w.agent_id = of_to AND w.refuses && ARRAY[of_from, of_user]);
       IF NOT FOUND THEN
         outcome := 'recipient';
         RETURN;
       END IF;
       INSERT INTO public.bus_counts (user_id)
         SELECT DISTINCT u FROM unnest(ARRAY[of_user, recipient]) u ORDER BY u
         ON CONFLICT DO NOTHING;
       PERFORM 1 FROM public.bus_counts c WHERE c.user_id IN (of_user, recipient)
         ORDER BY c.user_id FOR UPDATE;
       -- A concurrent request may have stored the message before the lock.
       SELECT m.digest INTO known FROM public.bus_messages m
        WHERE m.from_agent = of_from AND m.message_id = of_message;
       IF FOUND THEN
         outcome := CASE WHEN known = of_digest THEN 'known' ELSE 'other' END;
         RETURN;
       END IF;
       SELECT CASE WHEN c.day = today THEN c.sent ELSE 0 END AS sent INTO counts
         FROM public.bus_counts c WHERE c.user_id = of_user;
       IF counts.sent >= daily THEN
         outcome := 'daily';
         current := counts.sent;
         RETURN;
       END IF;
       IF (SELECT m.created_at > now() - interval '1 hour' FROM public.bus_messages m
            WHERE m.to_agent = of_to ORDER BY m.id DESC OFFSET hourly - 1 LIMIT 1) THEN
         outcome := 'hourly';
         current := hourly;
         RETURN;
       END IF;
       SELECT max(c.bytes) INTO current FROM public.bus_counts c
        WHERE c.user_id IN (of_user, recipient);
       IF current + new_bytes > most THEN
         outcome := 'bytes';
         RETURN;
       END IF;
       INSERT INTO public.bus_messages (message_id, action, service, from_agent, from_user,
                                        to_agent, to_user, digest, sealed, due_at)
         VALUES (of_message, of_action, of_service, of_from, of_user, of_to, recipient, of_digest,
                 of_sealed, CASE WHEN EXISTS (
                   SELECT FROM public.bus_messages p
                    WHERE p.from_agent = of_from AND p.to_agent = of_to AND p.tried_at IS NULL)
                  THEN 'infinity'::timestamptz ELSE now() END);
       UPDATE public.bus_counts c
          SET bytes = c.bytes + new_bytes,
              day = CASE WHEN c.user_id = of_user THEN today ELSE c.day END,
              sent = CASE WHEN c.user_id = of_user THEN counts.sent + 1 ELSE c.sent END
        WHERE c.user_id IN (of_user, recipient);
       outcome := 'stored';
     END$$;

   -- Notes that queued messages were tried, adds the attempt, ends them if there is a new status, and makes
   -- the next message of each pair due. Returns the messages that ended.
   CREATE FUNCTION settle_bus_messages(ids bigint[], new_status text, attempt jsonb)
     RETURNS TABLE (id bigint, to_agent text, to_user text)
     LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS
     $$#variable_conflict use_column
     BEGIN
       PERFORM 1 FROM public.bus_counts c WHERE c.user_id IN (
         SELECT m.from_user FROM public.bus_messages m WHERE m.id = ANY (ids))
         ORDER BY c.user_id FOR UPDATE;
       RETURN QUERY
         UPDATE public.bus_messages m
            SET tried_at = coalesce(m.tried_at, now()),
                status = coalesce(new_status, m.status),
                delivered_at = CASE WHEN new_status = 'delivered' THEN now() END,
                attempts = CASE WHEN attempt IS NULL THEN m.attempts
                                WHEN jsonb_array_length(m.attempts) < 100 THEN m.attempts || attempt
                                ELSE (m.attempts - 0) || attempt END
          WHERE m.id = ANY (ids) AND m.status = 'queued'
          RETURNING m.id, m.to_agent, m.to_user;
       UPDATE public.bus_messages n SET due_at = now()
        WHERE n.due_at = 'infinity' AND n.status = 'queued' AND n.id IN (
          SELECT min(u.id) FROM public.bus_messages m
            JOIN public.bus_messages u ON u.from_agent = m.from_agent AND u.to_agent = m.to_agent
           WHERE m.id = ANY (ids) AND u.tried_at IS NULL
           GROUP BY u.from_agent, u.to_agent);
     END$$;

   CREATE FUNCTION count_removed_bus_messages() RETURNS trigger
     LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS
     $$BEGIN
       PERFORM 1 FROM public.bus_counts c WHERE c.user_id IN (
         SELECT g.from_user FROM gone g UNION SELECT g.to_user FROM gone g)
         ORDER BY c.user_id FOR UPDATE;
       UPDATE public.bus_counts c SET bytes = c.bytes - r.bytes
         FROM (SELECT each.user_id, sum(each.bytes) AS bytes FROM (
                 SELECT g.from_user AS user_id, octet_length(g.sealed) AS bytes FROM gone g
                 UNION ALL
                 SELECT g.to_user, octet_length(g.sealed) FROM gone g WHERE g.to_user <> g.from_user
               ) each GROUP BY each.user_id) r
        WHERE c.user_id = r.user_id;
       RETURN NULL;
     END$$;
   CREATE TRIGGER bus_messages_removed AFTER DELETE ON bus_messages
     REFERENCING OLD TABLE AS gone
     FOR EACH STATEMENT EXECUTE FUNCTION count_removed_bus_messages();

   CREATE TRIGGER bus_messages_told AFTER INSERT ON bus_messages
     FOR EACH STATEMENT EXECUTE FUNCTION tell_of_row();
   CREATE TRIGGER bus_messages_changes_told AFTER UPDATE OF due_at ON bus_messages
     FOR EACH ROW WHEN (NEW.due_at < OLD.due_at) EXECUTE FUNCTION tell_of_row();
   CREATE TRIGGER bus_signatures_told AFTER INSERT ON bus_signatures
     FOR EACH STATEMENT EXECUTE FUNCTION tell_of_row();
   CREATE TRIGGER bus_signatures_changes_told AFTER UPDATE OF signature ON bus_signatures
     FOR EACH ROW WHEN (OLD.signature IS DISTINCT FROM NEW.signature)
     EXECUTE FUNCTION tell_of_row();`;

/** Messages between agents, their delivery and the limits of both. */
export const migration: Migration = async (context) => {
  await run(
    context,
    `ALTER TABLE mails DROP CONSTRAINT mails_kind_check;
     ALTER TABLE mails ADD CONSTRAINT mails_kind_check CHECK (kind IN ('verify-email',
       'change-email', 'reset-password', 'email-change-asked', 'email-changed',
       'password-was-reset', 'keys-got-scopes', 'key-added', 'sign-in-added', 'sign-in-removed',
       'bus-dead-letters'));`,
  );
  await run(context, TABLES);
  await run(context, FUNCTIONS);
  const owned = ownedThrough('user_id');
  const changed = 'SELECT, INSERT, DELETE, UPDATE';
  await protectTable(context, 'bus_webhooks', changed, owned);
  await protectTable(context, 'bus_counts', 'SELECT, INSERT, UPDATE', owned);
  await protectTable(context, 'bus_signatures', changed, owned);
  await protectTable(
    context,
    'bus_messages',
    `${changed} (sealed, status, step, attempts, routed_at, tried_at, delivered_at, due_at)`,
    seenByBoth('from_user', 'to_user'),
  );
  await run(context, `GRANT USAGE ON SEQUENCE bus_messages_id_seq TO ${servingRole(context)};`);
  await protectTable(
    context,
    'bus_threads',
    `${changed} (state, last_by, sealed_terms, updated_at)`,
    seenByBoth('user_a', 'user_b'),
  );
  await protectTable(
    context,
    'bus_amplifications',
    `${changed} (last_action, messages, updated_at)`,
    seenByBoth('from_user', 'to_user'),
  );
};
