import { createHmac } from 'node:crypto';
import { requestMail } from '../accounts/mail/request-mail.js';
import type { Database, TransactionStatements } from '../platform/database/database.js';
import { OutboundError } from '../platform/outbound/outbound-error.js';
import type { OutboundClient, PostAnswer } from '../platform/outbound/outbound.js';
import type { SecretBox } from '../platform/secrets/secret-box.js';
import { ServiceError } from '../lib/errors.js';
import { FairLimiter } from '../lib/fair-limiter.js';
import type { MessageStatus } from '../types/bus.js';
import { routeMessage } from './route-message.js';
import { messageContext, webhookContext } from './sealed-contexts.js';

/** Deliveries of a process at a time, and those to one host, which may also wait. */
const AT_ONCE = 100;
const TO_ONE_HOST = 10;
const MAX_WAITING_FOR_HOST = 10;
const MAX_WAIT_MS = 5_000;

/** Number of dead letters in a row after which a webhook is paused. */
export const MAX_DEAD_IN_ROW = 20;

/** The header of each delivery that names the message. */
const ID_HEADER = 'X-Bus-Message-Id';
const SIGNATURE_HEADER = 'X-Bus-Signature';

/** The message was not delivered, and has to be tried again. */
export class NotDeliveredError extends ServiceError {
  override readonly name = 'NotDeliveredError';

  constructor(message: string) {
    super(503, message);
  }
}

/** Too many deliveries to the host are in flight: none was tried. */
export class HostBusyError extends ServiceError {
  override readonly name = 'HostBusyError';

  constructor() {
    super(503, 'Other messages are being delivered to the host of the webhook');
  }
}

/** The outcome of a run: `settled` if the message had ended before. */
export type BusOutcome = 'delivered' | 'dead' | 'settled';

export interface Attempt {
  readonly at: string;
  /** Status of the receiver; null without an answer. */
  readonly status: number | null;
  readonly error: string | null;
}

interface Queued {
  readonly messageId: string;
  readonly fromAgent: string;
  readonly toAgent: string;
  readonly sealed: string;
  readonly url: string | null;
  readonly sealedSecret: string | null;
  readonly isPaused: boolean;
  /** True if the sender or the recipient is being removed. */
  readonly isOver: boolean;
}

interface Parts {
  readonly database: Database;
  readonly secrets: SecretBox;
  readonly outbound: Pick<OutboundClient, 'post'>;
}

/** The steps of a message's delivery. Each is idempotent. */
export class BusDelivery {
  readonly #parts: Parts;
  readonly #hosts = new FairLimiter({
    atOnce: AT_ONCE,
    perOwner: TO_ONE_HOST,
    queue: {
      max: AT_ONCE,
      perOwner: MAX_WAITING_FOR_HOST,
      maxWaitMs: MAX_WAIT_MS,
      refusal: () => new HostBusyError(),
    },
  });

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Passes a message to the service of its action, once. */
  route(id: string): Promise<void> {
    const { database, secrets } = this.#parts;
    return routeMessage(database, secrets, id);
  }

  /**
   * Tries to deliver a message, and stores the attempt.
   * @throws NotDeliveredError if it has to be tried again; HostBusyError if it was not tried.
   */
  async deliver(id: string, signal: AbortSignal): Promise<BusOutcome> {
    const queued = await this.#find(id);
    if (!queued) return 'settled';
    if (queued.isOver) {
      await this.#settle(id, 'dead', undefined);
      return 'dead';
    }
    const { sealedSecret, url } = queued;
    if (url === null || sealedSecret === null || queued.isPaused) {
      await this.#settle(id, undefined, undefined);
      throw new NotDeliveredError('The recipient has no webhook, or the webhook is paused');
    }
    const { attempt, status } = await this.#post({ ...queued, url, sealedSecret }, signal);
    if (status !== undefined) {
      await this.#settle(id, status, attempt);
      return status;
    }
    await this.#settle(id, undefined, attempt);
    throw new NotDeliveredError(
      attempt.error ?? `The receiver answered with status ${attempt.status}`,
    );
  }

  /** Ends a message whose attempts have ended. */
  async giveUp(id: string): Promise<BusOutcome> {
    return (await this.#settle(id, 'dead', undefined)) ? 'dead' : 'settled';
  }

  async #find(id: string): Promise<Queued | undefined> {
    const [queued] = await this.#parts.database.asPlatform().query<Queued>(
      `SELECT m.message_id AS "messageId", m.from_agent AS "fromAgent", m.to_agent AS "toAgent",
              m.sealed, w.url, w.sealed_secret AS "sealedSecret",
              w.paused_at IS NOT NULL AS "isPaused",
              f.desired = 'deleted' OR t.desired = 'deleted' AS "isOver"
         FROM bus_messages m
         JOIN agents f ON f.id = m.from_agent
         JOIN agents t ON t.id = m.to_agent
         LEFT JOIN bus_webhooks w ON w.agent_id = m.to_agent
        WHERE m.id = $id AND m.status = 'queued'`,
      { id },
    );
    return queued;
  }

  /** Posts a message to its webhook. @returns the status that ends the message; undefined to try again. */
  async #post(
    queued: Queued & { readonly url: string; readonly sealedSecret: string },
    signal: AbortSignal,
  ): Promise<{ readonly attempt: Attempt; readonly status: 'delivered' | 'dead' | undefined }> {
    const { fromAgent, messageId, sealed, sealedSecret, toAgent, url } = queued;
    const { outbound, secrets } = this.#parts;
    const body = secrets.open(sealed, messageContext(fromAgent, messageId));
    const secret = secrets.open(sealedSecret, webhookContext(toAgent));
    const at = new Date();
    let answer: PostAnswer;
    try {
      answer = await outbound.post(url, {
        headers: {
          'content-type': 'application/json',
          'user-agent': 'AgentPlatform-Bus/1.0',
          [ID_HEADER]: messageId,
          [SIGNATURE_HEADER]: signatureOf(secret, at, body),
        },
        body,
        signal,
        admit: (host, end) => this.#hosts.acquire({ owner: host, signal: end }),
      });
    } catch (error) {
      if (!(error instanceof OutboundError)) throw error;
      const attempt = { at: at.toISOString(), status: null, error: error.message };
      return { attempt, status: undefined };
    }
    const { status } = answer;
    const attempt = { at: at.toISOString(), status, error: null };
    return { attempt, status: endOf(status) };
  }

  /** Stores an attempt and the new status. @returns true if the message has ended by this. */
  async #settle(
    id: string,
    status: Exclude<MessageStatus, 'queued'> | undefined,
    attempt: Attempt | undefined,
  ): Promise<boolean> {
    return this.#parts.database.asPlatform().transaction(async (db) => {
      const settled = await db.query<{ to_agent: string; to_user: string; is_over: boolean }>(
        `SELECT s.to_agent, s.to_user, f.desired = 'deleted' OR t.desired = 'deleted' AS is_over
           FROM settle_bus_messages(ARRAY[$id::bigint], $status, $attempt::jsonb) s
           JOIN bus_messages m ON m.id = s.id
           JOIN agents f ON f.id = m.from_agent
           JOIN agents t ON t.id = m.to_agent`,
        { id, status: status ?? null, attempt: attempt ? JSON.stringify(attempt) : null },
      );
      const [ended] = settled;
      if (!ended || status === undefined) return false;
      if (status === 'delivered') await resetDeadLetters(db, ended.to_agent);
      else if (!ended.is_over) {
        const address = await countDeadLetter(db, ended.to_agent, ended.to_user);
        if (address !== undefined) {
          await requestMail(db, { kind: 'bus-dead-letters', address, userId: ended.to_user });
        }
      }
      return true;
    });
  }
}

/** Returns the status of a message after a receiver's answer; undefined to retry. */
function endOf(status: number): 'delivered' | 'dead' | undefined {
  if (status >= 200 && status <= 299) return 'delivered';
  return status === 410 ? 'dead' : undefined;
}

/** Returns the signature of a delivery: the time in Unix seconds, and the HMAC-SHA256 of time and body. */
export function signatureOf(secret: string, at: Date, body: string): string {
  const seconds = Math.floor(at.getTime() / 1_000);
  const mac = createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex');
  return `t=${seconds},v1=${mac}`;
}

const resetDeadLetters = (db: Pick<TransactionStatements, 'query'>, agentId: string) =>
  db.query(
    'UPDATE bus_webhooks SET dead_in_row = 0 WHERE agent_id = $agentId AND dead_in_row > 0',
    {
      agentId,
    },
  );

/** Counts a dead letter. @returns the address for the mail of the day, if it is due. */
async function countDeadLetter(
  db: Pick<TransactionStatements, 'query'>,
  agentId: string,
  userId: string,
): Promise<string | undefined> {
  const [row] = await db.query<{ email: string }>(
    `WITH counted AS (
       INSERT INTO bus_webhooks AS w (agent_id, user_id, dead_in_row, mailed_at)
         VALUES ($agentId, $userId, 1, now())
         ON CONFLICT (agent_id) DO UPDATE
            SET dead_in_row = w.dead_in_row + 1,
                paused_at = CASE WHEN w.url IS NOT NULL AND w.dead_in_row + 1 >= ${MAX_DEAD_IN_ROW}
                                 THEN coalesce(w.paused_at, now()) END,
                mailed_at = CASE WHEN w.mailed_at > now() - interval '1 day' THEN w.mailed_at
                                 ELSE now() END
       RETURNING w.user_id, w.mailed_at = now() AS is_due
     )
     SELECT u.email FROM counted c JOIN users u ON u.id = c.user_id
      WHERE c.is_due AND u.email_verified_at IS NOT NULL`,
    { agentId, userId },
  );
  return row?.email;
}
