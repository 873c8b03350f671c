import { createHmac, randomBytes } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import type { StandInPayment, StandInSession } from './payment-objects.js';
import { paymentPage, paymentsPage, portalPage } from './payment-pages.js';
import { subscriptionCall } from './subscription-calls.js';
import { StandInSubscriptions } from './subscriptions.js';

/** Maximum number of checkouts and events in memory. */
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
  readonly subscriptions: StandInSubscriptions;
  /** Makes the API answer with this status. */
  down?: number | undefined;
  /** Milliseconds before the API answers. */
  delayMs?: number | undefined;
  /**
   * Holds back the answer to the next call, which has been made up when `arrival` ends, until `release` is called.
   */
  holdAnswers(): { readonly arrival: Promise<void>; release(): void };
  /** Pays a checkout. @returns the id of the payment, or of the subscription. */
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
 * Starts a stand-in of Stripe for developers: checkouts, subscriptions and the pages on which they are paid and
 * changed, refunds, disputes and signed webhooks, in Stripe's formats. No card and no money is involved.
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
  const priceOfSession = new Map<string, string>();
  const byKey = new Map<string, object>();
  const payments = new Map<string, StandInPayment>();
  const events: StandInEvent[] = [];
  const closing = new AbortController();
  let held: Held | undefined;

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
    const mode = form.get('mode') ?? '';
    const named = form.get('line_items[0][price]');
    const price =
      named === null || mode !== 'subscription'
        ? undefined
        : StandInSubscriptions.of(subscriptions.prices, named);
    const session: StandInSession = {
      id,
      object: 'checkout.session',
      mode,
      status: 'open',
      client_reference_id: form.get('client_reference_id'),
      metadata: { checkoutId: form.get('metadata[checkoutId]') ?? '' },
      amount_total: price?.unit_amount ?? Number(form.get(`${item}[unit_amount]`)),
      currency: price?.currency ?? form.get(`${item}[currency]`) ?? '',
      payment_status: 'unpaid',
      payment_intent: null,
      subscription: null,
      customer_details: null,
      success_url: form.get('success_url') ?? '',
      cancel_url: form.get('cancel_url') ?? '',
      url: `${processor.url}/pay/${id}`,
    };
    sessions.set(id, session);
    if (mode === 'subscription') {
      const sent = (name: string) => `${item}${name.replace(/^[^[]+/, '[$&]')}`;
      priceOfSession.set(id, (price ?? subscriptions.addPrice(form, sent)).id);
    }
    return session;
  }

  /** Makes a payment. @returns its id. */
  function charge(amount: number, currency: string): string {
    const id = newId('pi');
    payments.set(id, {
      id,
      charge: newId('ch'),
      amount,
      currency,
      refunded: 0,
      dispute: undefined,
    });
    return id;
  }

  const subscriptions = new StandInSubscriptions({ newId, emit, charge });

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
    subscriptions,
    signed,
    holdAnswers() {
      const [arrival, released] = [new EventEmitter(), new EventEmitter()];
      held = {
        arrive: () => void arrival.emit('done'),
        released: once(released, 'done').then(() => undefined),
      };
      return {
        arrival: once(arrival, 'done').then(() => undefined),
        release: () => void released.emit('done'),
      };
    },
    pay(sessionId) {
      const session = sessions.get(sessionId);
      if (!session) throw new RangeError(`There is no checkout ${sessionId}`);
      const done = session.payment_intent ?? session.subscription;
      if (done !== null) return done;
      if (session.status !== 'open') throw new RangeError(`The checkout ${sessionId} has expired`);
      const priceId = priceOfSession.get(sessionId);
      const id =
        priceId === undefined
          ? charge(session.amount_total, session.currency)
          : subscriptions.begin(session, StandInSubscriptions.of(subscriptions.prices, priceId)).id;
      const paid: StandInSession = {
        ...session,
        status: 'complete',
        payment_status: 'paid',
        ...(priceId === undefined ? { payment_intent: id } : { subscription: id }),
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
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://stand-in');
    const isRead = request.method === 'GET';
    const form = isRead ? searchParams : new URLSearchParams(await text(request));
    if (processor.down !== undefined) {
      return json(processor.down, { error: { type: 'api_error', message: 'Not now' } });
    }
    if (authorization !== `Bearer ${secretKey}`) {
      return json(401, { error: { type: 'invalid_request_error', message: 'Invalid API Key' } });
    }
    const known = byKey.get(String(key));
    if (known) return json(200, known);
    if (!isRead && (sessions.size >= MAX_CHECKOUTS || subscriptions.isFull)) {
      return json(429, { error: { type: 'rate_limit_error', message: 'Too many objects' } });
    }
    const path = pathname.split('/').slice(2);
    try {
      const refund = (paymentId: string, cents: number) => processor.refund(paymentId, cents);
      const parts = { subscriptions, payments, newId, refund, chargeOf, url: processor.url };
      const call = { method: request.method ?? '', path, fields: form };
      const answer = checkoutCall(path, isRead, form) ?? subscriptionCall(parts, call);
      if (answer === undefined) {
        return json(404, { error: { type: 'invalid_request_error', message: 'Unrecognized URL' } });
      }
      if (typeof key === 'string' && byKey.size < MAX_EVENTS) byKey.set(key, answer);
      return json(200, answer);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      const { message } = error;
      return json(404, {
        error: { type: 'invalid_request_error', code: 'resource_missing', message },
      });
    }
  }

  async function heldApi(request: IncomingMessage): Promise<Answer> {
    const answer = await api(request);
    const holding = held;
    held = undefined;
    holding?.arrive();
    await holding?.released;
    return answer;
  }

  /** Makes, returns or expires a checkout. */
  function checkoutCall(
    [kind, sub, id, action]: readonly string[],
    isRead: boolean,
    form: URLSearchParams,
  ): object | undefined {
    if (kind !== 'checkout' || sub !== 'sessions') return undefined;
    if (id === undefined) return isRead ? undefined : createSession(form);
    const session = StandInSubscriptions.of(sessions, id);
    if (isRead && action === undefined) return session;
    if (isRead || action !== 'expire') return undefined;
    if (session.status !== 'open') throw new RangeError(`The checkout ${id} is not open`);
    const expired: StandInSession = { ...session, status: 'expired' };
    sessions.set(id, expired);
    emit('checkout.session.expired', expired);
    return expired;
  }

  /** Answers a request of the pages. */
  async function page(request: IncomingMessage): Promise<Answer> {
    const [, kind, id = '', action] = (request.url ?? '').split('/');
    if (request.method === 'GET' && kind === '') {
      return htmlPage(paymentsPage([...payments.values()], [...subscriptions.all.values()]));
    }
    const portal = subscriptions.portals.get(id);
    if (kind === 'portal' && portal) {
      const subscription = subscriptions.all.get(portal.subscription ?? '');
      if (!subscription) return notFound();
      const price = subscriptions.prices.get(portal.price ?? '');
      if (request.method === 'GET') return htmlPage(portalPage(portal, subscription, price));
      return act(request, subscription.id, portal.returnUrl, portal.price);
    }
    if (request.method === 'POST' && kind === 'subscriptions' && subscriptions.all.has(id)) {
      return act(request, id, '/', undefined);
    }
    const session = sessions.get(id);
    if (kind === 'pay' && session) {
      if (request.method === 'GET') return htmlPage(paymentPage(session));
      if (session.status === 'expired') return notFound();
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

  /** Changes a subscription by the button of a page. */
  async function act(
    request: IncomingMessage,
    id: string,
    location: string,
    price: string | undefined,
  ): Promise<Answer> {
    const action = new URLSearchParams(await text(request)).get('action');
    const isPaid = action?.endsWith('-unpaid') !== true;
    if (action?.startsWith('change') && price !== undefined)
      subscriptions.change(id, price, isPaid);
    else if (action?.startsWith('renew')) subscriptions.renew(id, isPaid);
    else if (action === 'pay') subscriptions.pay(id);
    else if (action === 'end') subscriptions.cancelAtPeriodEnd(id);
    else if (action === 'give-up') subscriptions.giveUp(id);
    else if (action === 'cancel') subscriptions.cancel(id);
    else return notFound();
    return { status: 303, type: 'text/plain', body: '', location };
  }

  const server = createServer((request, response) => {
    void (request.url?.startsWith('/v1/') ? heldApi(request) : page(request)).then(
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

interface Held {
  arrive(): void;
  readonly released: Promise<void>;
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
