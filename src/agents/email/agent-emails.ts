import { findEntitlement } from '../../accounts/accounts/entitlement.js';
import { isResetMailBlocked } from '../../accounts/accounts/reset-mail-blocks.js';
import type { AdminRules } from '../../accounts/accounts/admin.js';
import { sanitizeForJsonb } from '../../lib/well-formed.js';
import { deterministicUuid } from '../../lib/uuid-of.js';
import type { Database } from '../../platform/database/database.js';
import { TooComplexError } from '../../pages/page-error.js';
import type { AgentRef } from '../../types/agent-ref.js';
import type { EmailStatus } from '../../types/agent-emails.js';
import type { OwnerQuestion, TurnEnd } from '../chat/owner-turns.js';
import {
  headersOf,
  isAutomatic,
  senderOf,
  subjectOf,
  textOf,
  threadOf,
  type ReceivedMail,
} from './received-mail.js';
import { EmailProviderError, type OutgoingMail, type Resend } from './resend.js';
import { isProven } from './sender-proof.js';
import { isListed, isOwnDomain } from './sender-rules.js';
import type { EmailSettings } from './settings.js';

/** A mail as workflow histories have it. */
export interface EmailRef {
  readonly id: string;
  readonly agent: AgentRef;
}

/** The state of a mail, with its agent and conversation. */
export interface EmailStep {
  readonly status: EmailStatus;
  readonly mail: EmailRef;
}

interface Parts {
  readonly database: Database;
  readonly provider: Pick<Resend, 'received' | 'send'>;
  readonly settings: EmailSettings;
  readonly admins: AdminRules;
}

type End = Extract<EmailStatus, 'refused' | 'skipped' | 'failed'>;

/** Maximum number of mails to an agent in an hour whose sender is proven. */
export const MAX_AN_HOUR = 60;

/** Maximum number of an agent's mails that led to no question, such as forged ones; the newest are kept. */
const MAX_UNASKED = 100;

/** Hours for which the provider recognizes the key of an answer: it keeps keys for a day. */
const KEY_HOURS = 23;

const MAY_BE_SENT = 'The answer may have been sent: the provider did not confirm it in time';

/** Texts of a mail, which are removed when it is settled. */
const SETTLED = `settled_at = now(), subject = NULL, body = NULL, answer = NULL`;

/** E-mails to agents, as rows, from their reading to their answer. Every method may be repeated. */
export class AgentEmails {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Reads a mail at the provider, and stores its text if its sender is proven. @throws EmailProviderError if another
   * attempt may succeed
   */
  async read(id: string, signal: AbortSignal): Promise<EmailStep | undefined> {
    const stored = await this.#find(id);
    if (stored?.status === 'received') {
      try {
        await this.#accept(stored, await this.#parts.provider.received(stored.providerId, signal));
      } catch (error) {
        if (!isLasting(error)) throw error;
        await this.#end(id, 'received', 'failed', error.message);
      }
    }
    const now = await this.#find(id);
    // The step becomes part of a history, which has no address.
    return now && { status: now.status, mail: now.mail };
  }

  /** Returns the question for the agent; undefined if the turn is over. */
  async question({ id }: EmailRef): Promise<OwnerQuestion | undefined> {
    const [mail] = await this.#query<{ conversation: string; subject: string; body: string }>(
      `SELECT conversation, subject, body FROM agent_emails WHERE id = $id AND status = 'asking'`,
      { id },
    );
    if (!mail) return undefined;
    const { body, conversation, subject } = mail;
    return {
      conversation,
      text: [subject && `Subject: ${subject}`, body].filter(Boolean).join('\n\n'),
    };
  }

  /** Stores the end of a turn, with the answer until it is sent. */
  async finish({ id }: EmailRef, end: TurnEnd): Promise<void> {
    if (end.kind !== 'answered') return this.#end(id, 'asking', end.kind, end.reason);
    const answer = sanitizeForJsonb(end.answer);
    if (answer.trim() === '') return this.#end(id, 'asking', 'skipped', 'The answer has no text');
    await this.#query(
      `UPDATE agent_emails SET status = 'answering', answer = $answer, body = NULL
        WHERE id = $id AND status = 'asking'`,
      { id, answer },
    );
  }

  /**
   * Sends the answer of a mail under the mail's own key. @throws EmailProviderError if another attempt may
   * succeed
   */
  async send(id: string, signal: AbortSignal): Promise<EmailStatus | undefined> {
    const [answer] = await this.#query<Answer>(
      `UPDATE agent_emails e SET sending_at = coalesce(e.sending_at, now())
         FROM agents a WHERE e.id = $id AND e.status = 'answering' AND a.id = e.agent_id
       RETURNING e.id, a.subdomain, e.sender, e.subject, e.answer, e.message_id AS "messageId",
                 e.reply_to AS "earlier",
                 e.sending_at < now() - interval '${KEY_HOURS} hours' AS "isLate"`,
      { id },
    );
    if (!answer) return (await this.#find(id))?.status;
    try {
      if (answer.isLate) throw new EmailProviderError(MAY_BE_SENT, true);
      const mail = outgoing(answer, this.#parts.settings);
      const answerId = await this.#parts.provider.send(mail, `email-${id}`, signal);
      await this.#query(
        `UPDATE agent_emails SET status = 'answered', answer_id = $answerId, ${SETTLED}
          WHERE id = $id AND status = 'answering'`,
        { id, answerId },
      );
    } catch (error) {
      if (!isLasting(error)) throw error;
      await this.#end(id, 'answering', 'failed', error.message);
    }
    return (await this.#find(id))?.status;
  }

  /** Ends a mail whose provider did not answer in time. */
  async giveUp(id: string): Promise<EmailStatus | undefined> {
    await this.#end(id, 'received', 'failed', 'The e-mail provider did not return the mail');
    await this.#end(id, 'answering', 'failed', MAY_BE_SENT);
    return (await this.#find(id))?.status;
  }

  async #accept({ mail: { agent, id }, sender }: StoredMail, mail: ReceivedMail): Promise<void> {
    const headers = headersOf(mail);
    const refuse = (reason: string) => this.#end(id, 'received', 'refused', reason);
    if (senderOf(mail, headers) !== sender) return refuse('sender');
    if (isOwnDomain(sender, this.#parts.settings)) return refuse('sender');
    const { authservId, requiresProof: isRequired } = this.#parts.settings;
    if (!isProven(headers, sender, { authservId, isRequired })) return refuse('sender');
    if (isAutomatic(headers)) return refuse('automatic');
    if (!(await this.#mayCommand(agent, sender))) return refuse('sender');
    const skip = (reason: string) => this.#end(id, 'received', 'skipped', reason);
    if (!(await this.#hasPlan(agent))) return skip("The agent's owner has no plan");
    const [subject, body] = [subjectOf(mail), textOf(mail)];
    if (subject === '' && body === '') return skip('The mail has no text');
    const { earlier, messageId } = threadOf(mail, headers);
    // One sender's thread: another sender who knows its ids gets a conversation of their own.
    const thread = deterministicUuid([sender, earlier[0] ?? messageId ?? id]);
    const accepted = { id, conversation: `email-${thread}`, messageId, earlier, subject, body };
    if (!(await this.#open(agent, accepted))) return refuse('rate');
  }

  /** Opens the turn of a mail; returns false if it is one too many around its hour. */
  #open({ agentId }: AgentRef, mail: AcceptedMail): Promise<boolean> {
    return this.#parts.database.asPlatform().transaction(async (db) => {
      await db.lock(`e-mails accepted for ${agentId}`);
      // Mails may be read late and in another order: the hour is the one of their arrival.
      const [around] = await db.query<{ isFull: boolean }>(
        `SELECT count(*) >= ${MAX_AN_HOUR} AS "isFull"
           FROM agent_emails e JOIN agent_emails m ON m.agent_id = e.agent_id
          WHERE m.id = $id AND e.id <> m.id AND e.conversation IS NOT NULL
            AND e.received_at > m.received_at - interval '1 hour'
            AND e.received_at < m.received_at + interval '1 hour'`,
        { id: mail.id },
      );
      if (around?.isFull) return false;
      await db.query(
        `UPDATE agent_emails
            SET status = 'asking', conversation = $conversation, message_id = $messageId,
                reply_to = $earlier, subject = $subject, body = $body
          WHERE id = $id AND status = 'received'`,
        { ...mail },
      );
      return true;
    });
  }

  /**
   * Reports whether a sender may still write: the owner's address may have changed since, and nobody commands from a
   * mailbox that was reported as taken over.
   */
  async #mayCommand({ userId }: AgentRef, sender: string): Promise<boolean> {
    if (await isResetMailBlocked(this.#parts.database.asPlatform(), sender)) return false;
    if (isListed(sender, this.#parts.settings)) return true;
    const owner = await this.#query(
      'SELECT FROM users WHERE id = $userId AND email = $sender AND email_verified_at IS NOT NULL',
      { userId, sender },
    );
    return owner.length > 0;
  }

  async #hasPlan({ userId }: AgentRef): Promise<boolean> {
    const { admins, database } = this.#parts;
    return (await findEntitlement(database.asPlatform(), userId, admins)) !== undefined;
  }

  async #find(id: string): Promise<StoredMail | undefined> {
    const [row] = await this.#query<StepRow>(
      `SELECT e.status, e.sender, e.provider_id AS "providerId", e.agent_id AS "agentId",
              e.user_id AS "userId", a.host
         FROM agent_emails e JOIN agents a ON a.id = e.agent_id WHERE e.id = $id`,
      { id },
    );
    if (!row) return undefined;
    const { agentId, host, userId, ...step } = row;
    return { ...step, mail: { id, agent: { agentId, userId, host } } };
  }

  async #end(id: string, from: EmailStatus, status: End, reason: string): Promise<void> {
    const [ended] = await this.#query<{ agentId: string }>(
      `UPDATE agent_emails SET status = $status, reason = $reason, ${SETTLED}
        WHERE id = $id AND status = $from RETURNING agent_id AS "agentId"`,
      { id, from, status, reason },
    );
    if (ended && from === 'received') await this.#removeUnasked(ended.agentId);
  }

  /** Removes the oldest mails that led to no question, so that a flood of them is bounded. */
  async #removeUnasked(agentId: string): Promise<void> {
    await this.#parts.database.asPlatform().transaction(async (db) => {
      await db.lock(`e-mails that asked nobody of ${agentId}`);
      await db.query(
        `DELETE FROM agent_emails WHERE id IN (
           SELECT id FROM agent_emails
            WHERE agent_id = $agentId AND settled_at IS NOT NULL AND conversation IS NULL
            ORDER BY received_at DESC, id OFFSET ${MAX_UNASKED})`,
        { agentId },
      );
    });
  }

  #query<Row extends object>(sql: string, values: Record<string, unknown>): Promise<Row[]> {
    return this.#parts.database.asPlatform().query<Row>(sql, values);
  }
}

interface StoredMail extends EmailStep {
  readonly sender: string;
  readonly providerId: string;
}

/** A mail of a proven sender. */
interface AcceptedMail {
  readonly id: string;
  readonly conversation: string;
  readonly messageId: string | null;
  readonly earlier: readonly string[];
  readonly subject: string;
  readonly body: string;
}

type StepRow = Omit<StoredMail, 'mail'> & AgentRef;

interface Answer {
  readonly id: string;
  readonly subdomain: string;
  readonly sender: string;
  readonly subject: string;
  readonly answer: string;
  readonly messageId: string | null;
  readonly earlier: readonly string[];
  readonly isLate: boolean;
}

/** Returns the mail that answers another, in its thread. */
function outgoing(answer: Answer, { domain = '' }: EmailSettings): OutgoingMail {
  const { answer: text, earlier, id, messageId, sender, subdomain, subject } = answer;
  return {
    from: `${subdomain}@${domain}`,
    to: sender,
    subject: /^re:/i.test(subject) ? subject : `Re: ${subject}`.trimEnd(),
    text,
    headers: {
      'Auto-Submitted': 'auto-replied',
      ...(messageId !== null && {
        'In-Reply-To': messageId,
        References: [...earlier, messageId].join(' '),
      }),
    },
    tag: id,
  };
}

/** Reports whether another attempt would fail as well. */
const isLasting = (error: unknown): error is EmailProviderError | TooComplexError =>
  error instanceof TooComplexError || (error instanceof EmailProviderError && error.isFinal);
