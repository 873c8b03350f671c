import { area, variable, type SettingsOf } from '../platform/environment/area.js';
import { textAs } from '../platform/environment/types.js';
import { parseAmount } from '../types/money.js';

/** Base units. */
const amount = textAs('an amount like 500.00, with at most six decimals', parseAmount);

export const x402Settings = area('Payments by the x402 gateway', ({ production }) => ({
  daily: variable(
    'X402_PAY_DAILY',
    amount.prefault(production ? '0' : '500.00'),
    'most that one user may pay on a UTC day by `pay` of `POST /api/x402`, in US dollars, since the x402 gateway may charge the operator; with `0` here or in `X402_PAY_DAILY_TOTAL`, `pay` is off',
  ),
  dailyTotal: variable(
    'X402_PAY_DAILY_TOTAL',
    amount.prefault(production ? '0' : '2000.00'),
    'most that all users together may pay; when it is reached, operators are notified once a day',
  ),
}));

export type X402Settings = SettingsOf<typeof x402Settings>;
