/** A checkout session in the format of Stripe. */
export interface StandInSession {
  readonly id: string;
  readonly object: 'checkout.session';
  readonly mode: string;
  readonly status: 'open' | 'complete' | 'expired';
  readonly client_reference_id: string | null;
  readonly metadata: Readonly<Record<string, string>>;
  readonly amount_total: number;
  readonly currency: string;
  readonly payment_status: 'paid' | 'unpaid';
  readonly payment_intent: string | null;
  readonly subscription: string | null;
  readonly customer_details: { readonly email: string } | null;
  readonly success_url: string;
  readonly cancel_url: string;
  readonly url: string;
}

/** A payment, with the sum of its refunds in cents. */
export interface StandInPayment {
  readonly id: string;
  readonly charge: string;
  readonly amount: number;
  readonly currency: string;
  refunded: number;
  dispute: { readonly id: string; readonly status: string } | undefined;
}

/** A recurring price in the format of Stripe. */
export interface StandInPrice {
  readonly id: string;
  readonly object: 'price';
  readonly product: string;
  readonly unit_amount: number;
  readonly currency: string;
  readonly lookup_key: string | null;
  readonly recurring: { readonly interval: string; readonly interval_count: number };
}

export interface StandInInvoice {
  readonly id: string;
  readonly subscription: string;
  readonly reason: 'subscription_create' | 'subscription_cycle' | 'subscription_update';
  readonly amount: number;
  readonly currency: string;
  /** Seconds since 1970. */
  created: number;
  /** The payment that has paid the invoice. */
  payment: string | undefined;
}

/** A subscription; times are in seconds since 1970. */
export interface StandInSubscription {
  readonly id: string;
  readonly item: string;
  readonly customer: string;
  created: number;
  readonly metadata: Readonly<Record<string, string>>;
  status: string;
  price: StandInPrice;
  periodStart: number;
  periodEnd: number;
  cancelAt: number | null;
  endedAt: number | null;
  latestInvoice: string;
}

/** A page on which a customer confirms a change of plan; without a price, pays or cancels. */
export interface StandInPortal {
  readonly id: string;
  readonly customer: string;
  readonly subscription: string | undefined;
  readonly price: string | undefined;
  readonly returnUrl: string;
}
