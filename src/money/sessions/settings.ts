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
      'as soon as so much pathUSD was delivered and is not settled on chain, it is',
    ),
    settleIntervalMs: variable(
      'SESSION_SETTLE_INTERVAL',
      duration.prefault('1h'),
      'and what is less than that, at the latest so long after it was delivered',
    ),
    maxAgeMs: variable(
      'SESSION_MAX_AGE',
      duration.prefault('24h'),
      'after which a session closes by itself; less than `SESSION_HOLD`',
    ),
    holdMs: variable(
      'SESSION_HOLD',
      duration.prefault('48h'),
      'from when on a wallet can reclaim what was held: as the contract at `ESCROW_ADDRESS` has it, else no session is opened',
    ),
  }),
  (values) => values,
  ({ holdMs, maxAgeMs }) =>
    maxAgeMs < holdMs ? [] : ['SESSION_MAX_AGE must be less than SESSION_HOLD'],
);

export type PaymentSessionSettings = SettingsOf<typeof paymentSessionSettings>;

/** Returns the duration in seconds, as contracts count it. */
export const holdSecondsOf = (holdMs: number): bigint => BigInt(Math.ceil(holdMs / 1_000));
