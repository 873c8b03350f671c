import { area, variable, type SettingsOf } from '../../platform/environment/area.js';
import { duration, textAs } from '../../platform/environment/types.js';
import { parseAmount } from '../../types/money.js';

/** Base units. */
const amount = textAs(
  'an amount above zero like 10.00, with at most six decimals',
  (value) => parseAmount(value) || undefined,
);

export const paymentSessionSettings = area(
  'Payment sessions',
  () => ({
    settleThreshold: variable(
      'SESSION_SETTLE_THRESHOLD',
      amount.prefault('10.00'),
      'pathUSD that were delivered but not settled on chain: above this amount, a session is settled at once',
    ),
    settleIntervalMs: variable(
      'SESSION_SETTLE_INTERVAL',
      duration.prefault('1h'),
      'time after a delivery at which smaller amounts are settled at the latest',
    ),
    maxAgeMs: variable(
      'SESSION_MAX_AGE',
      duration.prefault('24h'),
      'time after which a session closes by itself; less than `SESSION_HOLD`',
    ),
    holdMs: variable(
      'SESSION_HOLD',
      duration.prefault('48h'),
      'time after which a wallet can reclaim a held deposit; must equal the value in the contract at `ESCROW_ADDRESS`, otherwise no session is opened',
    ),
  }),
  (values) => values,
  ({ holdMs, maxAgeMs }) =>
    maxAgeMs < holdMs ? [] : ['SESSION_MAX_AGE must be less than SESSION_HOLD'],
);

export type PaymentSessionSettings = SettingsOf<typeof paymentSessionSettings>;

/** Returns the duration in seconds, as contracts count it. */
export const holdSecondsOf = (holdMs: number): bigint => BigInt(Math.ceil(holdMs / 1_000));
