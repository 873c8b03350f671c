/**
 * `opening`: its hold is asked for on chain. `active`: it can be debited. `settling`: it is being closed,
 * and nothing is debited any more. `closed`: all of its deposit is where it belongs. `failed`: it was
 * never opened, and holds nothing.
 */
export type PaymentSessionState = 'opening' | 'active' | 'settling' | 'closed' | 'failed';

/** Those of which a wallet has one at a time. */
export const OPEN_STATES = [
  'opening',
  'active',
  'settling',
] as const satisfies PaymentSessionState[];

/** Those in which something is to be done for it now, whether or not anybody asks for it. */
export const MOVING_STATES = ['opening', 'settling'] as const satisfies PaymentSessionState[];

/** `settle` pays the treasury what was delivered; `close` does so for the last time, and gives the rest back. */
export type SettlementKind = 'settle' | 'close';

/** `failed`: nothing was moved by it. */
export type SettlementState = 'requested' | 'confirmed' | 'failed';
