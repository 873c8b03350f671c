/** The content of a payment processor's event that the platform acts on; no personal data. Amounts are in cents. */
export type ProcessorFact =
  /** The payment of a checkout. */
  | {
      readonly kind: 'payment';
      readonly sessionId: string;
      /** The id of our row that the processor returns; null for a checkout made elsewhere. */
      readonly checkoutId: string | null;
      readonly cents: number | null;
      readonly currency: string | null;
      readonly isPaid: boolean;
    }
  /** The sum of all refunds of a charge at the time of the event. */
  | { readonly kind: 'refunded'; readonly cents: number; readonly currency: string }
  /** A refund that did not reach the buyer. */
  | {
      readonly kind: 'refund-failed';
      readonly refundId: string;
      readonly cents: number;
      readonly currency: string;
    }
  | {
      readonly kind: 'dispute';
      readonly disputeId: string;
      readonly status: string;
      readonly cents: number;
      readonly currency: string;
    }
  /** A change of a subscription or of its invoices, whose only effect is that the subscription is read. */
  | { readonly kind: 'subscription'; readonly subscriptionId: string }
  /** An event in an unexpected form. */
  | { readonly kind: 'unreadable' };

/**
 * Outcome of an event: `booked` for a checkout of credits, `unpaid` for a checkout without a payment yet, `read`
 * for a subscription whose state was read, `unmatched` for an event that fits nothing of ours.
 */
export type ProcessorEventOutcome = 'booked' | 'unpaid' | 'unmatched' | 'read';
