import { area, variable, type SettingsOf } from '../platform/environment/area.js';
import { textAs } from '../platform/environment/types.js';
import { parseAmount } from '../types/money.js';

/** Base units. */
const amount = textAs('an amount like 500.00, with at most six decimals', parseAmount);

export const x402Settings = area('Payments by the x402 gateway', ({ production }) => ({
  daily: variable(
    'X402_PAY_DAILY',
    amount.prefault(production ? '0' : '500.00'),
    'maximum US dollars that one user may pay per UTC day by `pay` of `POST /api/x402`, since the x402 gateway may charge the operator; `0` here or in `X402_PAY_DAILY_TOTAL` disables `pay`',
  ),
  dailyTotal: variable(
    'X402_PAY_DAILY_TOTAL',
    amount.prefault(production ? '0' : '2000.00'),
    'maximum US dollars that all users together may pay per UTC day; when it is reached, operators are notified once a day',
  ),
}));

export type X402Settings = SettingsOf<typeof x402Settings>;
