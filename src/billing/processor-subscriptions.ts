import type { Stripe } from 'stripe';
import * as z from 'zod';
import {
  checkoutEnd,
  NO_CHECKOUT,
  ProcessorError,
  type MadeCheckout,
  type Processor,
} from './processor.js';
import {
  PLAN_CURRENCY,
  PLAN_INTERVAL,
  penceOf,
  type RecurringPrice,
  type SoldPlan,
} from './plan-prices.js';
import type { BillingSettings } from './settings.js';

const NO_ANSWER = 'The payment processor did not answer: retry later';

/** Maximum number of open invoices of a subscription that are read. */
const MAX_INVOICES = 100;

/** The checkout of a plan to make. */
export interface PlanOrder {
  /** The id of our row, which the subscription names in its metadata. */
  readonly checkoutId: string;
  readonly plan: SoldPlan;
  readonly successUrl: string;
  readonly cancelUrl: string;
}

/** A change of plan that the customer is to confirm at the processor. */
export interface PlanChange {
  readonly subscriptionId: string;
  /** The new plan; undefined for the page on which a subscription is paid for or cancelled. */
  readonly plan: SoldPlan | undefined;
  readonly returnUrl: string;
}

const seconds = z.int().transform((value) => new Date(value * 1_000));

/** An object, sent whole or as its id. */
const reference = z.union([z.string(), z.object({ id: z.string() }).transform(({ id }) => id)]);

const invoice = z.object({
  id: z.string(),
  status: z.string().nullish(),
  billing_reason: z.string().nullish(),
});

const subscription = z.object({
  id: z.string(),
  status: z.string(),
  customer: reference,
  created: seconds,
  cancel_at: seconds.nullish(),
  ended_at: seconds.nullish(),
  metadata: z.record(z.string(), z.string()).nullish(),
  latest_invoice: z.union([invoice, z.string()]).nullish(),
  items: z.object({
    data: z
      .array(
        z.object({
          id: z.string(),
          // Since the API version 2025-03-31 the period is that of the item.
          current_period_start: seconds,
          current_period_end: seconds,
          price: z.object({
            id: z.string(),
            unit_amount: z.int().nullish(),
            currency: z.string(),
            recurring: z.object({ interval: z.string(), interval_count: z.int() }).nullish(),
          }),
        }),
      )
      .min(1),
  }),
});

const openInvoices = z.array(invoice.extend({ created: seconds }));

const invoicePayments = z.array(
  z.object({
    invoice: z.object({
      parent: z
        .object({ subscription_details: z.object({ subscription: reference }).nullish() })
        .nullish(),
    }),
    payment: z.object({
      payment_intent: z
        .object({ latest_charge: z.object({ refunded: z.boolean() }).nullish() })
        .nullish(),
    }),
  }),
);

const session = z.object({
  id: z.string(),
  status: z.string().nullish(),
  subscription: reference.nullish(),
});

/** The state of a subscription at the processor. */
export interface ProcessorSubscription {
  readonly id: string;
  readonly status: string;
  readonly customerId: string;
  /** The id of our row of the checkout; undefined for a subscription made elsewhere. */
  readonly checkoutId: string | undefined;
  readonly itemId: string;
  readonly price: RecurringPrice;
  readonly createdAt: Date;
  readonly periodStart: Date;
  readonly periodEnd: Date;
  /** Time at which the subscription ends by itself. */
  readonly endsAt: Date | null;
  readonly endedAt: Date | null;
  /** True while an invoice of a change of plan is not paid. */
  readonly isChangeUnpaid: boolean;
  /** Time of the oldest open invoice, at which the unpaid period starts. */
  readonly unpaidSince: Date | null;
}

/** A checkout at the processor: `complete` once its subscription exists. */
export interface CheckoutState {
  readonly status: 'open' | 'complete' | 'expired';
  readonly subscriptionId: string | undefined;
  /** The processor's own object. */
  readonly object: unknown;
}

/** Subscriptions at the payment processor. All methods throw ProcessorError while it does not answer. */
export class ProcessorSubscriptions {
  readonly #processor: Pick<Processor, 'call'>;
  readonly #settings: Pick<BillingSettings, 'planPrices'>;
  /** Configurations of the portal that this process has made. */
  readonly #portals = new Map<SoldPlan | undefined, string>();

  constructor(processor: Pick<Processor, 'call'>, settings: Pick<BillingSettings, 'planPrices'>) {
    this.#processor = processor;
    this.#settings = settings;
  }

  /** Makes a checkout; idempotent for the id of our row. */
  async createCheckout(order: PlanOrder): Promise<MadeCheckout> {
    const { cancelUrl, checkoutId, plan, successUrl } = order;
    const price = this.#settings.planPrices[plan];
    const metadata = { checkoutId };
    const { id, url } = await this.#processor.call(NO_CHECKOUT, (stripe) =>
      stripe.checkout.sessions.create(
        {
          mode: 'subscription',
          client_reference_id: checkoutId,
          metadata,
          subscription_data: { metadata },
          line_items: [
            {
              quantity: 1,
              ...(price === undefined
                ? { price_data: { ...amountOf(plan), product_data: { name: nameOf(plan) } } }
                : { price }),
            },
          ],
          success_url: successUrl,
          cancel_url: cancelUrl,
          expires_at: checkoutEnd(),
        },
        { idempotencyKey: checkoutId },
      ),
    );
    if (url === null) throw new ProcessorError('The payment processor sent no payment page');
    return { sessionId: id, url };
  }

  /** Returns the state of a checkout; undefined if the processor has no such checkout. */
  async readCheckout(sessionId: string): Promise<CheckoutState | undefined> {
    const object = await this.#found((stripe) => stripe.checkout.sessions.retrieve(sessionId));
    return object && checkoutState(object);
  }

  /** Expires a checkout that is open, so that it cannot be paid, and returns its state. */
  async endCheckout(sessionId: string): Promise<CheckoutState | undefined> {
    const state = await this.readCheckout(sessionId);
    if (state?.status !== 'open') return state;
    try {
      const expired = await this.#processor.call(NO_ANSWER, (stripe) =>
        stripe.checkout.sessions.expire(sessionId),
      );
      return checkoutState(expired);
    } catch (error) {
      // The checkout may have been paid since.
      const now = await this.readCheckout(sessionId);
      if (now?.status === 'open') throw error;
      return now;
    }
  }

  /** Reads a subscription; undefined if the processor has no such subscription. */
  async read(id: string): Promise<ProcessorSubscription | undefined> {
    const object = await this.#found((stripe) =>
      stripe.subscriptions.retrieve(id, { expand: ['latest_invoice'] }),
    );
    if (!object) return undefined;
    const read = parsed(subscription, object);
    const [item] = read.items.data;
    if (!item) throw unexpected();
    const { price } = item;
    const latest = typeof read.latest_invoice === 'string' ? null : read.latest_invoice;
    const open = ENDED.includes(read.status) ? [] : await this.#openInvoices(id);
    const unpaid = open.map(({ created }) => created.getTime());
    return {
      id: read.id,
      status: read.status,
      customerId: read.customer,
      checkoutId: read.metadata?.checkoutId,
      itemId: item.id,
      price: {
        id: price.id,
        cents: price.unit_amount ?? null,
        currency: price.currency,
        interval: price.recurring?.interval_count === 1 ? price.recurring.interval : null,
      },
      createdAt: read.created,
      periodStart: item.current_period_start,
      periodEnd: item.current_period_end,
      endsAt: read.cancel_at ?? null,
      endedAt: read.ended_at ?? null,
      // A later invoice, such as of a change back, does not pay for an earlier change.
      isChangeUnpaid: [latest, ...open].some(
        (each) => each?.billing_reason === 'subscription_update' && each.status !== 'paid',
      ),
      unpaidSince: unpaid.length > 0 ? new Date(Math.min(...unpaid)) : null,
    };
  }

  async #openInvoices(id: string) {
    const { data } = await this.#processor.call(NO_ANSWER, (stripe) =>
      stripe.invoices.list({ subscription: id, status: 'open', limit: MAX_INVOICES }),
    );
    return parsed(openInvoices, data);
  }

  /** Finds the subscription whose invoice a payment has paid; undefined for any other payment. */
  async findByPayment(
    paymentIntent: string,
  ): Promise<{ readonly subscriptionId: string; readonly isRefunded: boolean } | undefined> {
    const list = await this.#found((stripe) =>
      stripe.invoicePayments.list({
        payment: { type: 'payment_intent', payment_intent: paymentIntent },
        expand: ['data.invoice', 'data.payment.payment_intent.latest_charge'],
        limit: 1,
      }),
    );
    const [found] = parsed(invoicePayments, list?.data ?? []);
    const subscriptionId = found?.invoice.parent?.subscription_details?.subscription;
    if (subscriptionId === undefined) return undefined;
    return {
      subscriptionId,
      isRefunded: found?.payment.payment_intent?.latest_charge?.refunded ?? false,
    };
  }

  /** Cancels a subscription immediately, if it has not ended. */
  async cancel(id: string): Promise<void> {
    const object = await this.#found((stripe) => stripe.subscriptions.retrieve(id));
    if (!object || ENDED.includes(object.status)) return;
    await this.#found((stripe) => stripe.subscriptions.cancel(id));
  }

  /** Refunds what was paid on a subscription's last invoice, once, and cancels the subscription. */
  async refundAndCancel(id: string): Promise<void> {
    const object = await this.#found((stripe) =>
      stripe.subscriptions.retrieve(id, { expand: ['latest_invoice.payments'] }),
    );
    const last = object?.latest_invoice;
    const payments = last && typeof last !== 'string' ? (last.payments?.data ?? []) : [];
    for (const { payment, status } of payments) {
      if (status !== 'paid' || payment.payment_intent === undefined) continue;
      const paymentIntent = parsed(reference, payment.payment_intent);
      await this.#processor.call(NO_ANSWER, async (stripe) => {
        const { data } = await stripe.refunds.list({ payment_intent: paymentIntent, limit: 1 });
        if (data.length > 0) return;
        await stripe.refunds.create(
          { payment_intent: paymentIntent },
          { idempotencyKey: `refund-${id}-${paymentIntent}` },
        );
      });
    }
    // A refund whose cancellation is lost is reported, and ends the plan as well.
    await this.cancel(id);
  }

  /** Makes the page on which a customer confirms a change of plan, pays or cancels. */
  async createPortal({ plan, returnUrl, subscriptionId }: PlanChange): Promise<string> {
    const current = await this.read(subscriptionId);
    if (!current)
      throw new ProcessorError('The payment processor has no subscription for your plan');
    const price = plan === undefined ? undefined : await this.#priceOf(plan);
    const configuration = await this.#portal(plan, price);
    const { url } = await this.#processor.call(NO_CHECKOUT, (stripe) =>
      stripe.billingPortal.sessions.create({
        customer: current.customerId,
        configuration,
        return_url: returnUrl,
        ...(price && {
          flow_data: {
            type: 'subscription_update_confirm',
            subscription_update_confirm: {
              subscription: subscriptionId,
              items: [{ id: current.itemId, price: price.id, quantity: 1 }],
            },
            after_completion: { type: 'redirect', redirect: { return_url: returnUrl } },
          },
        }),
      }),
    );
    return url;
  }

  /** Makes the configuration of the portal, which allows no other change of plan. */
  async #portal(plan: SoldPlan | undefined, price: FoundPrice | undefined): Promise<string> {
    const known = this.#portals.get(plan);
    if (known !== undefined) return known;
    const { id } = await this.#processor.call(NO_CHECKOUT, (stripe) =>
      stripe.billingPortal.configurations.create(
        {
          features: {
            invoice_history: { enabled: true },
            payment_method_update: { enabled: true },
            subscription_cancel: { enabled: true, mode: 'at_period_end' },
            ...(price && {
              subscription_update: {
                enabled: true,
                default_allowed_updates: ['price'],
                products: [{ product: price.product, prices: [price.id] }],
                proration_behavior: 'always_invoice',
              },
            }),
          },
        },
        { idempotencyKey: `portal-${plan ?? 'home'}-${price?.id ?? ''}` },
      ),
    );
    this.#portals.set(plan, id);
    return id;
  }

  /** Returns the price that a plan changes to: the configured one, or one that is made at first use. */
  async #priceOf(plan: SoldPlan): Promise<FoundPrice> {
    const configured = this.#settings.planPrices[plan];
    const amount = amountOf(plan);
    const key = `agent-platform-${plan}-${amount.currency}-${amount.unit_amount}`;
    const { id, product } = await this.#processor.call(NO_CHECKOUT, async (stripe) => {
      if (configured !== undefined) return stripe.prices.retrieve(configured);
      const { data } = await stripe.prices.list({ lookup_keys: [key], active: true, limit: 1 });
      return (
        data[0] ??
        stripe.prices.create(
          { ...amount, lookup_key: key, product_data: { name: nameOf(plan) } },
          { idempotencyKey: key },
        )
      );
    });
    return { id, product: parsed(reference, product) };
  }

  /** Calls the API; undefined if the named object does not exist. */
  async #found<T>(work: (stripe: Stripe) => Promise<T>): Promise<T | undefined> {
    try {
      return await this.#processor.call(NO_ANSWER, work);
    } catch (error) {
      if (error instanceof ProcessorError && isMissing(error.cause)) return undefined;
      throw error;
    }
  }
}

interface FoundPrice {
  readonly id: string;
  readonly product: string;
}

/** States of a subscription that cannot be cancelled any more. */
const ENDED: readonly string[] = ['canceled', 'incomplete_expired'];

const isMissing = (cause: unknown): boolean =>
  cause instanceof Error && 'code' in cause && cause.code === 'resource_missing';

const nameOf = (plan: SoldPlan): string => `Plan ${plan}`;

const amountOf = (plan: SoldPlan) => ({
  currency: PLAN_CURRENCY,
  unit_amount: penceOf(plan),
  recurring: { interval: PLAN_INTERVAL } as const,
});

function checkoutState(object: unknown): CheckoutState {
  const { status, subscription: subscriptionId } = parsed(session, object);
  if (status !== 'open' && status !== 'complete' && status !== 'expired') throw unexpected();
  return { status, subscriptionId: subscriptionId ?? undefined, object };
}

const unexpected = () => new ProcessorError('The payment processor answered in an unexpected form');

function parsed<S extends z.ZodType>(schema: S, object: unknown): z.output<S> {
  const read = schema.safeParse(object);
  if (!read.success) throw unexpected();
  return read.data;
}
