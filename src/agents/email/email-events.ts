import * as z from 'zod';
import { Batcher } from '../../lib/batcher.js';
import { UnavailableError } from '../../lib/errors.js';
import type { Database } from '../../platform/database/database.js';
import { ProviderWebhook, type WebhookHeaders } from '../../platform/webhooks/provider-webhook.js';
import type { EmailReason, EmailReceipt } from '../../types/agent-emails.js';
import { MAX_AN_HOUR } from './agent-emails.js';
import { addressOf, domainOf, localPartOf } from './mailbox.js';
import { TAG } from './resend.js';
import { isListed, isOwnDomain } from './sender-rules.js';
import type { EmailSettings } from './settings.js';

/** Maximum number of mails to an agent that wait to be read: no sender is proven before. */
const MAX_UNREAD = 600;

/** Maximum number of recipients of a mail that are looked up. */
const MAX_RECIPIENTS = 50;

/**
 * Maximum number of mails in one statement. Larger batches need fewer commits, and commits with a
 * notification wait for each other.
 */
const MAX_BATCH = 200;

const mailId = z.string().regex(/^[\w-]{1,255}$/);
const mailboxes = z.array(z.string()).nullish();

const received = z.object({
  type: z.literal('email.received'),
  data: z.object({
    email_id: mailId,
    from: z.string(),
    to: mailboxes,
    cc: mailboxes,
    bcc: mailboxes,
  }),
});

const about = z.object({
  email_id: mailId,
  tags: z
    .object({ [TAG]: z.string().max(255).optional() })
    .nullish()
    .catch(null),
});

const bounced = z.object({
  type: z.literal('email.bounced'),
  data: about.extend({
    bounce: z.object({ type: z.string().nullish(), subType: z.string().nullish() }).nullish(),
  }),
});

const complained = z.object({ type: z.literal('email.complained'), data: about });

const event = z.discriminatedUnion('type', [received, bounced, complained]);

type Event = z.output<typeof event>;
type Received = z.output<typeof received>['data'];
type AboutAnswer = Exclude<Event, { readonly type: 'email.received' }>;

/** A mail that is to be stored. */
interface NewMail {
  readonly eventId: string;
  readonly mailId: string;
  /** Subdomains of the agents among the recipients. */
  readonly names: readonly string[];
  readonly sender: string;
  /** True if the operator allows the sender to write to every agent. */
  readonly isListed: boolean;
}

/** Mails with the first agent among their recipients. */
const ADDRESSED = `
  SELECT e.*, a.id AS agent_id, a.user_id
    FROM jsonb_to_recordset($rows::jsonb) AS e (position integer, event_id text, mail_id text,
           names text[], sender text, is_listed boolean)
    LEFT JOIN LATERAL (
      SELECT g.id, g.user_id FROM unnest(e.names) WITH ORDINALITY AS n (name, place)
        JOIN agents g ON g.subdomain = n.name AND g.deleted_at IS NULL AND g.desired <> 'deleted'
       ORDER BY n.place LIMIT 1) a ON true`;

/** Locks the agents of mails in order: two processes would otherwise wait for each other. */
const LOCK_AGENTS = `
  SELECT pg_advisory_xact_lock(key)
    FROM (SELECT DISTINCT hashtext('e-mails of ' || agent_id) AS key FROM (${ADDRESSED}) m
           WHERE agent_id IS NOT NULL ORDER BY key) agents`;

/**
 * Stores mails to agents whose rows are locked, and returns a receipt for each. Only mails of a proven sender
 * get a conversation. Forged mails count until they are read.
 */
const STORE = `
  WITH mails AS MATERIALIZED (
    SELECT m.*, m.is_listed OR u.email_verified_at IS NOT NULL AS may_write,
           -- With a limit, so that each is a look-up by the key.
           (SELECT w.id FROM provider_webhooks w WHERE w.kind = 'email' AND w.id = m.event_id
             LIMIT 1) IS NOT NULL AS is_known
      FROM (${ADDRESSED}) m LEFT JOIN users u ON u.id = m.user_id AND u.email = m.sender
  ), counted AS MATERIALIZED (
    SELECT m.*, c.accepted < ${MAX_AN_HOUR}
                AND c.unread + dense_rank() OVER (PARTITION BY m.agent_id ORDER BY m.event_id)
                    <= ${MAX_UNREAD} AS is_admitted
      FROM mails m CROSS JOIN LATERAL (
        SELECT (SELECT count(*) FROM agent_emails e
                 WHERE e.agent_id = m.agent_id AND e.conversation IS NOT NULL
                   AND e.received_at > now() - interval '1 hour') AS accepted,
               (SELECT count(*) FROM agent_emails e
                 WHERE e.agent_id = m.agent_id AND e.status = 'received') AS unread) c
     WHERE m.agent_id IS NOT NULL AND m.may_write AND NOT m.is_known
  ), fresh AS (
    -- In order: two processes with the same events would otherwise wait for each other.
    INSERT INTO provider_webhooks (kind, id)
      SELECT 'email', event_id FROM counted WHERE is_admitted ORDER BY event_id COLLATE "C"
      ON CONFLICT DO NOTHING RETURNING id
  ), stored AS (
    INSERT INTO agent_emails (id, user_id, agent_id, provider_id, sender)
      SELECT gen_random_uuid()::text, c.user_id, c.agent_id, c.mail_id, c.sender
        FROM counted c JOIN fresh f ON f.id = c.event_id ORDER BY c.mail_id COLLATE "C"
      ON CONFLICT DO NOTHING RETURNING provider_id
  )
  SELECT CASE WHEN m.agent_id IS NULL THEN 'recipient'
              WHEN NOT m.may_write THEN 'sender'
              WHEN NOT c.is_admitted THEN 'rate'
              -- The first of several events of a batch about one mail stored the mail.
              WHEN s.provider_id IS NOT NULL
                   AND row_number() OVER (PARTITION BY c.mail_id
                                            ORDER BY c.is_admitted DESC, m.position) = 1
                THEN 'stored'
              ELSE 'duplicate' END AS receipt
    FROM mails m LEFT JOIN counted c USING (position)
    LEFT JOIN stored s ON s.provider_id = c.mail_id
   ORDER BY m.position`;

/** Receives the events of the e-mail provider, and stores each before it is answered. */
export class EmailEvents {
  readonly #database: Database;
  readonly #settings: EmailSettings;
  readonly #webhook: ProviderWebhook;
  readonly #batches = new Batcher<NewMail, EmailReceipt>((mails) => this.#insert(mails), MAX_BATCH);

  constructor(database: Database, settings: EmailSettings) {
    this.#database = database;
    this.#settings = settings;
    this.#webhook = new ProviderWebhook({
      kind: 'email',
      secrets: settings.webhookSecrets,
      setting: 'EMAIL_WEBHOOK_SECRET',
    });
  }

  /**
   * Verifies and stores an event, or returns why it has no effect. @throws BadRequestError, UnavailableError
   */
  async receive(body: Buffer, headers: WebhookHeaders): Promise<EmailReason | undefined> {
    const { apiKey, domain } = this.#settings;
    if (apiKey === undefined || domain === undefined) {
      throw new UnavailableError(
        'E-mail is not configured: set EMAIL_API_KEY, EMAIL_DOMAIN and EMAIL_WEBHOOK_SECRET',
      );
    }
    const { eventId, payload } = this.#webhook.verify(body, headers);
    const read = event.safeParse(payload);
    if (!read.success) return 'event';
    if (read.data.type !== 'email.received') return this.#record(eventId, read.data);
    const receipt = await this.#store(eventId, read.data.data, domain);
    return receipt === 'stored' ? undefined : receipt;
  }

  async #store(eventId: string, mail: Received, domain: string): Promise<EmailReceipt> {
    const names = [mail.to, mail.cc, mail.bcc]
      .flatMap((each) => each ?? [])
      .slice(0, MAX_RECIPIENTS)
      .flatMap((mailbox) => addressOf(mailbox) ?? [])
      .filter((address) => domainOf(address) === domain)
      .map(localPartOf);
    if (names.length === 0) return 'recipient';
    const sender = addressOf(mail.from);
    if (sender === undefined || isOwnDomain(sender, this.#settings)) return 'sender';
    const isKnown = isListed(sender, this.#settings);
    return this.#batches.add({ eventId, mailId: mail.email_id, names, sender, isListed: isKnown });
  }

  async #insert(mails: readonly NewMail[]): Promise<readonly EmailReceipt[]> {
    const rows = mails.map(
      ({ eventId, isListed: is_listed, mailId: mail_id, ...mail }, position) => ({
        ...mail,
        position,
        event_id: eventId,
        mail_id,
        is_listed,
      }),
    );
    const values = { rows: JSON.stringify(rows) };
    const stored = await this.#database.asPlatform().statements((db) => {
      // Not awaited, so that both are sent in one round trip; the second sees the changes for which the locks
      // waited.
      const locked = db.query(LOCK_AGENTS, values);
      const receipts = db.query<{ receipt: EmailReceipt }>(STORE, values);
      return Promise.all([receipts, locked]).then(([found]) => found);
    });
    return stored.map(({ receipt }) => receipt);
  }

  /** Records a bounce or a complaint with the mail whose answer it is about. */
  async #record(eventId: string, { data, type }: AboutAnswer): Promise<EmailReason | undefined> {
    const set =
      type === 'email.bounced'
        ? 'bounced_at = coalesce(bounced_at, now()), bounce = coalesce(bounce, $bounce)'
        : 'complained_at = coalesce(complained_at, now())';
    const bounce = 'bounce' in data ? (data.bounce ?? {}) : {};
    const { subType, type: kind } = bounce;
    const [row] = await this.#database.asPlatform().query<{ known: boolean; isFresh: boolean }>(
      // The row's id is in the tag, for an answer whose own id was lost.
      `WITH mail AS (
         SELECT id FROM agent_emails WHERE answer_id = $answer OR id = $tag LIMIT 1
       ), fresh AS (
         INSERT INTO provider_webhooks (kind, id) SELECT 'email', $eventId FROM mail
           ON CONFLICT DO NOTHING RETURNING id
       ), recorded AS (
         UPDATE agent_emails SET ${set}
          WHERE id IN (SELECT id FROM mail) AND EXISTS (SELECT FROM fresh)
       )
       SELECT EXISTS (SELECT FROM mail) AS known, EXISTS (SELECT FROM fresh) AS "isFresh"`,
      {
        eventId,
        answer: data.email_id,
        tag: data.tags?.[TAG] ?? '',
        bounce: [kind, subType].filter(Boolean).join('/').slice(0, 100) || null,
      },
    );
    if (!row?.known) return 'unknown';
    return row.isFresh ? undefined : 'duplicate';
  }
}
