/**
 * `opening`: its hold is requested on chain. `active`: it can be debited. `settling`: it is being closed
 * and accepts no debits. `closed`: all of its deposit is settled or refunded. `failed`: it was never
 * opened and holds no funds.
 */
export type PaymentSessionState = 'opening' | 'active' | 'settling' | 'closed' | 'failed';

/** States of which a wallet has at most one session. */
export const OPEN_STATES = [
  'opening',
  'active',
  'settling',
] as const satisfies PaymentSessionState[];

/** States in which a session has work to do without any request. */
export const MOVING_STATES = ['opening', 'settling'] as const satisfies PaymentSessionState[];

/** `settle` pays the delivered amount to the treasury; `close` also refunds the rest. */
export type SettlementKind = 'settle' | 'close';

/** `failed`: the payment moved no funds. */
export type SettlementState = 'requested' | 'confirmed' | 'failed';
