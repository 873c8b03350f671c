import type {
  StandInInvoice,
  StandInPortal,
  StandInPrice,
  StandInSession,
  StandInSubscription,
} from './payment-objects.js';

const MONTH_S = 30 * 86_400;

/** Maximum number of objects of a kind in memory. */
const MAX_OBJECTS = 10_000;

/** The stand-in that subscriptions belong to. */
export interface SubscriptionParts {
  readonly newId: (prefix: string) => string;
  readonly emit: (type: string, object: object) => void;
  /** Makes a payment. @returns its id. */
  readonly charge: (amount: number, currency: string) => string;
}

/** Subscriptions of the stand-in, with their prices, invoices and portal pages. */
export class StandInSubscriptions {
  readonly all = new Map<string, StandInSubscription>();
  readonly invoices = new Map<string, StandInInvoice>();
  readonly prices = new Map<string, StandInPrice>();
  readonly portals = new Map<string, StandInPortal>();
  readonly #parts: SubscriptionParts;

  constructor(parts: SubscriptionParts) {
    this.#parts = parts;
  }

  get isFull(): boolean {
    return [this.all, this.invoices, this.prices, this.portals].some(
      ({ size }) => size >= MAX_OBJECTS,
    );
  }

  /** Returns an object of a map. @throws RangeError for an unknown one. */
  static of<T>(map: ReadonlyMap<string, T>, id: string): T {
    const found = map.get(id);
    if (found === undefined) throw new RangeError(`No such object: ${id}`);
    return found;
  }

  /** Makes a price from a form's `unit_amount`, `currency` and interval, whose full names `at` returns. */
  addPrice(form: URLSearchParams, at = (name: string) => name): StandInPrice {
    const id = this.#parts.newId('price');
    const price: StandInPrice = {
      id,
      object: 'price',
      product: this.#parts.newId('prod'),
      unit_amount: Number(form.get(at('unit_amount'))),
      currency: form.get(at('currency')) ?? '',
      lookup_key: form.get(at('lookup_key')),
      recurring: { interval: form.get(at('recurring[interval]')) ?? 'month', interval_count: 1 },
    };
    this.prices.set(id, price);
    return price;
  }

  /** Makes the subscription of a checkout, and has its first invoice paid. */
  begin({ metadata }: StandInSession, price: StandInPrice): StandInSubscription {
    const { newId, emit } = this.#parts;
    const created = now();
    const subscription: StandInSubscription = {
      id: newId('sub'),
      item: newId('si'),
      customer: newId('cus'),
      created,
      metadata,
      status: 'active',
      price,
      periodStart: created,
      periodEnd: created + MONTH_S,
      cancelAt: null,
      endedAt: null,
      latestInvoice: '',
    };
    this.all.set(subscription.id, subscription);
    this.#invoice(subscription, 'subscription_create', price.unit_amount, true);
    emit('customer.subscription.created', this.wire(subscription));
    return subscription;
  }

  /** Moves on to the next period, which begins now, with a paid or an unpaid invoice. */
  renew(id: string, isPaid: boolean): void {
    const subscription = StandInSubscriptions.of(this.all, id);
    subscription.periodStart = now();
    subscription.periodEnd = subscription.periodStart + MONTH_S;
    if (!isPaid) subscription.status = 'past_due';
    this.#invoice(subscription, 'subscription_cycle', subscription.price.unit_amount, isPaid);
    this.#emitUpdate(subscription);
  }

  /** Changes the price immediately, with an invoice of the difference. */
  change(id: string, priceId: string, isPaid: boolean): void {
    const subscription = StandInSubscriptions.of(this.all, id);
    const price = StandInSubscriptions.of(this.prices, priceId);
    const due = Math.max(0, price.unit_amount - subscription.price.unit_amount);
    subscription.price = price;
    if (!isPaid) subscription.status = 'past_due';
    this.#invoice(subscription, 'subscription_update', due, isPaid);
    this.#emitUpdate(subscription);
  }

  /** Pays all open invoices. */
  pay(id: string): void {
    const subscription = StandInSubscriptions.of(this.all, id);
    for (const invoice of this.openInvoices(id)) this.#settle(invoice);
    subscription.status = 'active';
    this.#emitUpdate(subscription);
  }

  /** Stops collecting payments: the subscription is `unpaid`. */
  giveUp(id: string): void {
    const subscription = StandInSubscriptions.of(this.all, id);
    subscription.status = 'unpaid';
    this.#emitUpdate(subscription);
  }

  cancel(id: string): StandInSubscription {
    const subscription = StandInSubscriptions.of(this.all, id);
    subscription.status = 'canceled';
    subscription.endedAt = now();
    this.#parts.emit('customer.subscription.deleted', this.wire(subscription));
    return subscription;
  }

  cancelAtPeriodEnd(id: string): void {
    const subscription = StandInSubscriptions.of(this.all, id);
    subscription.cancelAt = subscription.periodEnd;
    this.#emitUpdate(subscription);
  }

  openInvoices(id: string): StandInInvoice[] {
    return [...this.invoices.values()].filter(
      ({ payment, subscription }) => subscription === id && payment === undefined,
    );
  }

  /** Returns a subscription in Stripe's format. @param expand names of the parts to send whole. */
  wire(subscription: StandInSubscription, expand: readonly string[] = []) {
    const { created, customer, id, item, metadata, price, status } = subscription;
    const isWhole = expand.some((each) => each.startsWith('latest_invoice'));
    const latest = StandInSubscriptions.of(this.invoices, subscription.latestInvoice);
    return {
      id,
      object: 'subscription',
      status,
      customer,
      created,
      currency: price.currency,
      cancel_at: subscription.cancelAt,
      cancel_at_period_end: subscription.cancelAt !== null,
      ended_at: subscription.endedAt,
      metadata,
      latest_invoice: isWhole
        ? this.wireInvoice(latest, expand.includes('latest_invoice.payments'))
        : latest.id,
      items: {
        object: 'list',
        data: [
          {
            id: item,
            object: 'subscription_item',
            current_period_start: subscription.periodStart,
            current_period_end: subscription.periodEnd,
            price,
            quantity: 1,
          },
        ],
      },
    };
  }

  wireInvoice(invoice: StandInInvoice, withPayments = false) {
    const { amount, created, currency, id, payment, reason, subscription } = invoice;
    return {
      id,
      object: 'invoice',
      status: payment === undefined ? 'open' : 'paid',
      billing_reason: reason,
      amount_due: amount,
      amount_paid: payment === undefined ? 0 : amount,
      currency,
      created,
      parent: {
        type: 'subscription_details',
        quote_details: null,
        subscription_details: { subscription, metadata: {} },
      },
      ...(withPayments && {
        payments: {
          object: 'list',
          data: payment ? [{ id: `inpay_${id}`, status: 'paid', payment: paidBy(payment) }] : [],
        },
      }),
    };
  }

  #invoice(
    subscription: StandInSubscription,
    reason: StandInInvoice['reason'],
    amount: number,
    isPaid: boolean,
  ): void {
    const { id, price } = subscription;
    const invoice: StandInInvoice = {
      id: this.#parts.newId('in'),
      subscription: id,
      reason,
      amount,
      currency: price.currency,
      created: now(),
      payment: undefined,
    };
    this.invoices.set(invoice.id, invoice);
    subscription.latestInvoice = invoice.id;
    if (isPaid) this.#settle(invoice);
    else this.#parts.emit('invoice.payment_failed', this.wireInvoice(invoice));
  }

  #settle(invoice: StandInInvoice): void {
    invoice.payment = this.#parts.charge(invoice.amount, invoice.currency);
    this.#parts.emit('invoice.paid', this.wireInvoice(invoice));
  }

  #emitUpdate(subscription: StandInSubscription): void {
    this.#parts.emit('customer.subscription.updated', this.wire(subscription));
  }
}

export const paidBy = (payment: string) => ({ type: 'payment_intent', payment_intent: payment });

const now = (): number => Math.floor(Date.now() / 1_000);
