import { TooManyRequestsError, UnavailableError, UnprocessableError } from '../lib/errors.js';
import type { JsonObject } from '../lib/json.js';
import { secondsOfDayLeft, utcDay } from '../lib/utc-day.js';
import { NO_AGENT, requestNotification } from '../notifications/outbox.js';
import { recordAudit } from '../platform/audit/audit.js';
import type { Database, Statements } from '../platform/database/database.js';
import {
  AnswerDroppedError,
  StillRunningError,
} from '../platform/idempotency/idempotency-store.js';
import { formatAmount, ONE } from '../types/money.js';
import type { X402Outcome, X402PaymentState } from '../types/x402-payment-states.js';
import type { X402Settings } from './settings.js';
import { isSuccess, objectIn, X402GatewayError, type X402Gateway } from './x402-gateway.js';

/** Seconds without an outcome after which a payment is `unknown`. */
const PENDING_S = 120;

/** Payments that one statement ends. */
const BATCH = 100;

export interface X402Payment {
  readonly agentId: string;
  /** Base units. */
  readonly amount: bigint;
  readonly currency: string;
  readonly recipient: string;
  /** Slug of the endpoint that is paid for. */
  readonly endpoint: string | undefined;
  readonly method: string;
}

export interface X402PaymentRequest {
  /** Equal for repetitions of the request; the gateway gets it as `Idempotency-Key`. */
  readonly id: string;
  readonly requestId: string;
  readonly user: { readonly id: string; readonly email: string };
  readonly payment: X402Payment;
  /** Stores the answer for the caller's `Idempotency-Key` with the outcome. */
  readonly keep?: ((db: Statements, answer: JsonObject) => Promise<unknown>) | undefined;
}

interface StoredPayment {
  readonly agentId: string;
  readonly amount: string;
  readonly currency: string;
  readonly recipient: string;
  readonly endpoint: string | null;
  readonly method: string;
  readonly state: X402PaymentState;
  /** Seconds until a payment without an outcome is `unknown`. */
  readonly wait: number;
}

/** A limit that admits no such payment, in base units. */
interface Refusal {
  readonly scope: 'user' | 'all';
  readonly current: bigint;
  readonly limit: bigint;
}

const READ = `
  SELECT agent_id AS "agentId", amount, currency, recipient, endpoint, method, state,
         greatest(1, ceil(extract(epoch FROM sent_at - now()) + ${PENDING_S}))::integer AS wait
    FROM x402_payments WHERE id = $id FOR UPDATE`;

/** Sums of the UTC day without this payment; refused and failed payments do not count. */
const SUMS = `
  SELECT coalesce(sum(amount), 0) AS "ofAll",
         coalesce(sum(amount) FILTER (WHERE user_id = $userId), 0) AS "ofUser"
    FROM x402_payments
   WHERE sent_at >= date_trunc('day', now(), 'UTC') AND id <> $id
     AND state IN ('pending', 'paid', 'unknown')`;

const BEGIN = `
  INSERT INTO x402_payments AS p
         (id, user_id, agent_id, amount, currency, recipient, endpoint, method)
    VALUES ($id, $userId, $agentId, $amount, $currency, $recipient, $endpoint, $method)
  ON CONFLICT (id) DO UPDATE
    SET state = 'pending', attempt = p.attempt + 1, sent_at = now(), ended_at = NULL
  RETURNING attempt`;

/** An outcome replaces that of an interrupted attempt, but none of a later attempt. */
const END = `
  UPDATE x402_payments SET state = $outcome, ended_at = now()
   WHERE id = $id AND attempt = $attempt AND state IN ('pending', 'unknown')`;

const END_UNANSWERED = `
  WITH ended AS (
    UPDATE x402_payments SET state = 'unknown', ended_at = now()
     WHERE id = ANY (ARRAY(
       SELECT id FROM x402_payments
        WHERE state = 'pending' AND sent_at < now() - interval '${PENDING_S} seconds'
          AND ($id::text IS NULL OR id = $id)
        ORDER BY sent_at LIMIT ${BATCH} FOR UPDATE SKIP LOCKED))
    RETURNING id, user_id, attempt)
  INSERT INTO audit_log (actor, user_id, action, subject, detail)
    SELECT 'platform', user_id, 'x402.outcome', id,
           jsonb_build_object('outcome', 'unknown', 'attempt', attempt)
      FROM ended
  RETURNING subject`;

/** Ends payments whose process died before their outcome was stored; returns how many. */
export async function endUnanswered(db: Statements, id?: string): Promise<number> {
  return (await db.query(END_UNANSWERED, { id: id ?? null })).length;
}

/** Payments by the x402 gateway. Each is stored before it is sent, and is sent again only at its caller's request. */
export class X402Payments {
  readonly #database: Database;
  readonly #gateway: Pick<X402Gateway, 'send'>;
  readonly #limits: X402Settings;

  constructor(database: Database, gateway: Pick<X402Gateway, 'send'>, limits: X402Settings) {
    this.#database = database;
    this.#gateway = gateway;
    this.#limits = limits;
  }

  /** Throws UnavailableError if payments are off. */
  requireEnabled(): void {
    const { daily, dailyTotal } = this.#limits;
    if (daily === 0n || dailyTotal === 0n)
      throw new UnavailableError('x402 payments are not enabled');
  }

  /**
   * Sends a payment and returns the gateway's answer. @throws X402GatewayError unless the gateway confirms the
   * payment by an object; TooManyRequestsError beyond a limit of the day; AnswerDroppedError if the payment was made
   * before, StillRunningError while it is being made, UnprocessableError if its id is of another payment.
   */
  async pay(request: X402PaymentRequest): Promise<JsonObject> {
    const { id, keep, requestId, user } = request;
    const attempt = await this.#begin(request);
    const { answer, cause, outcome } = await this.#send(request);
    await this.#database.asPlatform().statements(async (db) => {
      await db.query(END, { id, attempt, outcome });
      await recordAudit(db, {
        actor: user.id,
        userId: user.id,
        action: 'x402.outcome',
        subject: id,
        requestId,
        detail: { outcome, attempt },
      });
      // The outcome is stored even if a repetition has claimed the key.
      if (answer !== undefined) await keep?.(db, answer);
    });
    if (answer === undefined) throw new X402GatewayError(cause);
    return answer;
  }

  /** Stores the payment and its audit record before it is sent. @returns the attempt's number. */
  async #begin(request: X402PaymentRequest): Promise<number> {
    const begun = await this.#database.asPlatform().statements(async (db) => {
      // Until the commit, so that no two payments exceed a limit together.
      await db.lock('x402-payments');
      await endUnanswered(db, request.id);
      const [stored] = await db.query<StoredPayment>(READ, { id: request.id });
      if (stored !== undefined) requireRepeatable(stored, request.payment);
      return (await this.#refusalOf(db, request)) ?? insert(db, request);
    });
    if (typeof begun === 'number') return begun;
    throw tooMuch(begun);
  }

  /** Returns the limit that refuses a payment; notifies operators when that of all is reached. */
  async #refusalOf(db: Statements, { id, payment, user }: X402PaymentRequest) {
    const { daily, dailyTotal } = this.#limits;
    const [sums] = await db.query<{ ofAll: string; ofUser: string }>(SUMS, { id, userId: user.id });
    const [ofAll, ofUser] = [BigInt(sums?.ofAll ?? 0), BigInt(sums?.ofUser ?? 0)];
    if (ofUser + payment.amount > daily) {
      return { scope: 'user', current: ofUser, limit: daily } satisfies Refusal;
    }
    if (ofAll + payment.amount < dailyTotal) return undefined;
    const day = utcDay();
    await requestNotification(db, {
      id: `x402-payments-${day}`,
      agent: NO_AGENT,
      event: 'x402_payments_used_up',
      day,
      limit: formatAmount(dailyTotal),
    });
    if (ofAll + payment.amount === dailyTotal) return undefined;
    return { scope: 'all', current: ofAll, limit: dailyTotal } satisfies Refusal;
  }

  async #send({ id, payment }: X402PaymentRequest): Promise<{
    readonly outcome: X402Outcome;
    /** The gateway's answer to a payment that it made. */
    readonly answer?: JsonObject;
    readonly cause?: unknown;
  }> {
    let isConnected = false;
    try {
      // The client's disconnection does not end a payment, whose outcome would be unknown.
      const { said, status } = await this.#gateway.send({
        path: '/api/pay',
        fields: { ...payment, amount: Number(formatAmount(payment.amount)) },
        idempotencyKey: id,
        onConnected: () => (isConnected = true),
      });
      if (isSuccess(status)) {
        const answer = objectIn(said);
        if (answer !== undefined) return { outcome: 'paid', answer };
        return { outcome: 'paid', cause: new Error('The x402 gateway sent no valid answer') };
      }
      const cause = new Error(`The x402 gateway answered with status ${status}`);
      return { outcome: status >= 400 && status < 500 ? 'refused' : 'unknown', cause };
    } catch (cause) {
      return { outcome: isConnected ? 'unknown' : 'failed', cause };
    }
  }
}

async function insert(
  db: Statements,
  { id, payment, requestId, user }: X402PaymentRequest,
): Promise<number> {
  const { agentId, amount, currency, endpoint, method, recipient } = payment;
  const [row] = await db.query<{ attempt: number }>(BEGIN, {
    ...{ id, agentId, currency, method, recipient },
    userId: user.id,
    amount: String(amount),
    endpoint: endpoint ?? null,
  });
  const attempt = row?.attempt ?? 1;
  await recordAudit(db, {
    actor: user.id,
    userId: user.id,
    action: 'x402.pay',
    subject: id,
    requestId,
    detail: {
      ...{ email: user.email, amount: formatAmount(amount), currency, recipient },
      ...{ method, endpoint, agentId, attempt },
    },
  });
  return attempt;
}

/** Refuses a repetition that must not be sent again. */
function requireRepeatable(stored: StoredPayment, payment: X402Payment): void {
  const { agentId, amount, currency, endpoint = null, method, recipient } = payment;
  const isSame =
    stored.agentId === agentId &&
    stored.amount === String(amount) &&
    stored.currency === currency &&
    stored.recipient === recipient &&
    stored.endpoint === endpoint &&
    stored.method === method;
  if (!isSame) {
    throw new UnprocessableError('Idempotency-Key was used with another request: use a new key');
  }
  if (stored.state === 'paid') throw new AnswerDroppedError();
  if (stored.state === 'pending') throw new StillRunningError(stored.wait);
}

function tooMuch({ current, limit, scope }: Refusal): TooManyRequestsError {
  const whose = scope === 'user' ? 'Your' : "All users'";
  return new TooManyRequestsError(
    `${whose} x402 payments of this UTC day would exceed their limit: retry after midnight UTC, or pay less`,
    { max: Number(limit / ONE), resetS: secondsOfDayLeft() },
    undefined,
    { current: formatAmount(current), limit: formatAmount(limit) },
  );
}
