import { createHmac, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import type { StandInPayment, StandInSession } from './payment-objects.js';
import { paymentPage, paymentsPage } from './payment-pages.js';

/** Most checkouts and events in memory. */
const MAX_CHECKOUTS = 10_000;
const MAX_EVENTS = 100_000;

/** Milliseconds between two deliveries of an event, and the most deliveries. */
const RETRY_MS = 1_000;
const MAX_DELIVERIES = 300;

const CALL_TIMEOUT_MS = 10_000;

/** An event, as it is delivered. */
export interface StandInEvent {
  readonly id: string;
  readonly type: string;
  readonly created: number;
  readonly data: { readonly object: object };
}

export interface PaymentProcessor {
  readonly url: string;
  /** Environment of a platform that uses this processor. */
  readonly env: Readonly<Record<string, string>>;
  /** Events in the order in which they happened. */
  readonly events: readonly StandInEvent[];
  /** Requests that made a checkout, without repetitions. */
  readonly sessions: ReadonlyMap<string, StandInSession>;
  /** Makes the API answer with this status. */
  down?: number | undefined;
  /** Milliseconds before the API answers. */
  delayMs?: number | undefined;
  /** Pays a checkout. @returns the payment's id. */
  pay(sessionId: string): string;
  /** Refunds cents of a payment. @returns the refund's id. */
  refund(paymentId: string, cents: number): string;
  failRefund(paymentId: string, refundId: string, cents: number): void;
  /** Opens a dispute of the whole payment, or moves it to a further status. */
  dispute(paymentId: string, status: string): void;
  /** Returns the headers and the body of an event's delivery. @param at seconds since 1970. */
  signed(event: object, at?: number): { headers: Record<string, string>; body: string };
  close(): Promise<void>;
}

interface ProcessorOptions {
  readonly port?: number;
  /** Address of the webhook; without one, events are only recorded. */
  readonly webhookUrl?: string;
}

/**
 * Starts a stand-in of Stripe for developers: checkouts, the page on which they are paid, refunds, disputes and
 * signed webhooks, in Stripe's formats. No card and no money is involved.
 *
 * @param options.port any free port by default.
 */
export async function startPaymentProcessor({
  port = 0,
  webhookUrl,
}: ProcessorOptions = {}): Promise<PaymentProcessor> {
  const secretKey = 'sk_test_of_the_stand_in';
  const webhookSecret = `whsec_${randomBytes(24).toString('hex')}`;
  const sessions = new Map<string, StandInSession>();
  const byKey = new Map<string, StandInSession>();
  const payments = new Map<string, StandInPayment>();
  const events: StandInEvent[] = [];
  const closing = new AbortController();

  const newId = (prefix: string) => `${prefix}_${randomBytes(12).toString('hex')}`;

  function signed(event: object, at = Math.floor(Date.now() / 1_000)) {
    const body = JSON.stringify(event);
    const signature = createHmac('sha256', webhookSecret).update(`${at}.${body}`).digest('hex');
    const headers = {
      'content-type': 'application/json; charset=utf-8',
      'stripe-signature': `t=${at},v1=${signature}`,
    };
    return { headers, body };
  }

  function emit(type: string, object: object): void {
    const event = {
      id: newId('evt'),
      object: 'event',
      type,
      created: Math.floor(Date.now() / 1_000),
      livemode: false,
      data: { object },
    };
    if (events.length < MAX_EVENTS) events.push(event);
    if (webhookUrl !== undefined) void deliver(webhookUrl, event);
  }

  /** Delivers an event until it is received, as the processor does, but more often. */
  async function deliver(url: string, event: StandInEvent): Promise<void> {
    for (let attempt = 0; attempt < MAX_DELIVERIES && !closing.signal.aborted; attempt += 1) {
      try {
        const signal = AbortSignal.any([closing.signal, AbortSignal.timeout(CALL_TIMEOUT_MS)]);
        const answer = await fetch(url, { method: 'POST', signal, ...signed(event) });
        await answer.body?.cancel();
        if (answer.ok) return;
      } catch {
        // The platform is being restarted: the next attempt may reach it.
      }
      await delay(RETRY_MS, undefined, { signal: closing.signal }).catch(() => undefined);
    }
  }

  function createSession(form: URLSearchParams): StandInSession {
    const id = newId('cs_test');
    const item = 'line_items[0][price_data]';
    const session: StandInSession = {
      id,
      object: 'checkout.session',
      mode: form.get('mode') ?? '',
      client_reference_id: form.get('client_reference_id'),
      metadata: { checkoutId: form.get('metadata[checkoutId]') ?? '' },
      amount_total: Number(form.get(`${item}[unit_amount]`)),
      currency: form.get(`${item}[currency]`) ?? '',
      payment_status: 'unpaid',
      payment_intent: null,
      customer_details: null,
      success_url: form.get('success_url') ?? '',
      cancel_url: form.get('cancel_url') ?? '',
      url: `${processor.url}/pay/${id}`,
    };
    sessions.set(id, session);
    return session;
  }

  const paymentOf = (id: string): StandInPayment => {
    const payment = payments.get(id);
    if (!payment) throw new RangeError(`There is no payment ${id}`);
    return payment;
  };

  const processor: PaymentProcessor = {
    url: '',
    env: {},
    events,
    sessions,
    signed,
    pay(sessionId) {
      const session = sessions.get(sessionId);
      if (!session) throw new RangeError(`There is no checkout ${sessionId}`);
      if (session.payment_intent !== null) return session.payment_intent;
      const { amount_total: amount, currency } = session;
      const id = newId('pi');
      const charge = newId('ch');
      payments.set(id, { id, charge, amount, currency, refunded: 0, dispute: undefined });
      const paid: StandInSession = {
        ...session,
        payment_status: 'paid',
        payment_intent: id,
        customer_details: { email: 'buyer@example.com' },
      };
      sessions.set(sessionId, paid);
      emit('checkout.session.completed', paid);
      return id;
    },
    refund(paymentId, cents) {
      const payment = paymentOf(paymentId);
      if (!(cents > 0 && cents <= payment.amount - payment.refunded)) {
        throw new RangeError('The refund is larger than what is left of the payment');
      }
      payment.refunded += cents;
      emit('charge.refunded', chargeOf(payment));
      return newId('re');
    },
    failRefund(paymentId, refundId, cents) {
      const { charge, currency, id } = paymentOf(paymentId);
      paymentOf(paymentId).refunded -= cents;
      emit('refund.failed', {
        id: refundId,
        object: 'refund',
        amount: cents,
        charge,
        currency,
        payment_intent: id,
        status: 'failed',
      });
    },
    dispute(paymentId, status) {
      const payment = paymentOf(paymentId);
      const type = payment.dispute === undefined ? 'created' : 'updated';
      const isClosed = status === 'won' || status === 'lost';
      payment.dispute = { id: payment.dispute?.id ?? newId('dp'), status };
      const { amount, charge, currency, dispute, id } = payment;
      emit(`charge.dispute.${isClosed ? 'closed' : type}`, {
        ...dispute,
        object: 'dispute',
        amount,
        charge,
        currency,
        payment_intent: id,
        reason: 'fraudulent',
      });
    },
    async close() {
      closing.abort();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };

  /** Answers a call of the API; the same idempotency key makes the same checkout. */
  async function api(request: IncomingMessage): Promise<Answer> {
    if (processor.delayMs !== undefined) await delay(processor.delayMs);
    const { authorization, 'idempotency-key': key } = request.headers;
    const form = new URLSearchParams(await text(request));
    if (processor.down !== undefined) {
      return json(processor.down, { error: { type: 'api_error', message: 'Not now' } });
    }
    if (authorization !== `Bearer ${secretKey}`) {
      return json(401, { error: { type: 'invalid_request_error', message: 'Invalid API Key' } });
    }
    if (request.method !== 'POST' || request.url !== '/v1/checkout/sessions') {
      return json(404, { error: { type: 'invalid_request_error', message: 'Unrecognized URL' } });
    }
    const known = byKey.get(String(key));
    if (!known && sessions.size === MAX_CHECKOUTS) {
      return json(429, { error: { type: 'rate_limit_error', message: 'Too many checkouts' } });
    }
    const session = known ?? createSession(form);
    if (typeof key === 'string') byKey.set(key, session);
    return json(200, session);
  }

  /** Answers a request of the pages. */
  async function page(request: IncomingMessage): Promise<Answer> {
    const [, kind, id = '', action] = (request.url ?? '').split('/');
    if (request.method === 'GET' && kind === '') {
      return htmlPage(paymentsPage([...payments.values()]));
    }
    const session = sessions.get(id);
    if (kind === 'pay' && session) {
      if (request.method === 'GET') return htmlPage(paymentPage(session));
      processor.pay(id);
      return { status: 303, type: 'text/plain', body: '', location: session.success_url };
    }
    if (request.method === 'POST' && kind === 'payments' && payments.has(id)) {
      const form = new URLSearchParams(await text(request));
      try {
        if (action === 'refund') processor.refund(id, Number(form.get('amount')));
        else if (action === 'dispute') processor.dispute(id, form.get('status') ?? '');
        else return notFound();
      } catch (error) {
        if (!(error instanceof RangeError)) throw error;
        return { status: 400, type: 'text/plain', body: `${error.message}\n` };
      }
      return { status: 303, type: 'text/plain', body: '', location: '/' };
    }
    return notFound();
  }

  const server = createServer((request, response) => {
    void (request.url?.startsWith('/v1/') ? api(request) : page(request)).then(
      ({ body, location, status, type }) =>
        response
          .writeHead(status, { 'content-type': type, ...(location && { location }) })
          .end(body),
      () => response.writeHead(500).end(),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return Object.assign(processor, {
    url,
    env: {
      PAYPROC_API_URL: url,
      PAYPROC_SECRET_KEY: secretKey,
      PAYPROC_WEBHOOK_SECRET: webhookSecret,
    },
  });
}

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
  readonly location?: string;
}

const json = (status: number, body: object): Answer => ({
  status,
  type: 'application/json',
  body: JSON.stringify(body),
});

const htmlPage = (body: string): Answer => ({
  status: 200,
  type: 'text/html; charset=utf-8',
  body,
});

const notFound = (): Answer => ({ status: 404, type: 'text/plain', body: 'Not found\n' });

const chargeOf = ({ amount, charge, currency, id, refunded }: StandInPayment) => ({
  id: charge,
  object: 'charge',
  amount,
  amount_refunded: refunded,
  refunded: refunded === amount,
  currency,
  payment_intent: id,
  billing_details: { email: 'buyer@example.com' },
});
