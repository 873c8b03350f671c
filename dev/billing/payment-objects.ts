/** A checkout session in the format of Stripe. */
export interface StandInSession {
  readonly id: string;
  readonly object: 'checkout.session';
  readonly mode: string;
  readonly client_reference_id: string | null;
  readonly metadata: Readonly<Record<string, string>>;
  readonly amount_total: number;
  readonly currency: string;
  readonly payment_status: 'paid' | 'unpaid';
  readonly payment_intent: string | null;
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
