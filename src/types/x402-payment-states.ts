/**
 * `pending` while the gateway is called; `refused` after its 4xx; `failed` if nothing was sent; `unknown` if it may
 * have paid.
 */
export type X402PaymentState = 'pending' | 'paid' | 'refused' | 'failed' | 'unknown';

export type X402Outcome = Exclude<X402PaymentState, 'pending'>;
