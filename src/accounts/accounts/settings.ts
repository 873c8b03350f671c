import { area, variable, type SettingsOf } from '../../platform/environment/area.js';
import { boolean, duration, entriesOf, textAs } from '../../platform/environment/types.js';
import { parseAmount } from '../../types/money.js';

const emails = textAs('addresses, separated by commas', (value): readonly string[] =>
  entriesOf(value.toLowerCase()),
);

/** Base units. */
const amount = textAs('an amount like 20.00, with at most six decimals', parseAmount);

export const accountSettings = area(
  'Accounts',
  ({ production }) => ({
    adminEmails: variable(
      'ADMIN_EMAILS',
      emails.prefault(''),
      'addresses of administrators; each becomes one with its verified address, or by the link that `scripts/admin-links.js` prints; if empty outside production, the first account becomes the administrator',
    ),
    sessionCookieSecure: variable(
      'SESSION_COOKIE_SECURE',
      boolean.prefault(String(production)),
      '`true`: browsers send session cookies only over HTTPS',
    ),
    stepUpMaxAgeMs: variable(
      'STEP_UP_MAX_AGE',
      duration.prefault('10m'),
      'time after a sign-in in which a session may make sensitive changes, such as linking and unlinking sign-in methods',
    ),
    creditsGrantedADay: variable(
      'CREDITS_GRANTED_A_DAY',
      amount.prefault('20.00'),
      'maximum credits in US dollars that referrals grant on a UTC day, over all accounts; when it is reached, operators are notified once',
    ),
    botDetection: variable(
      'BOT_DETECTION',
      boolean.prefault(String(production)),
      '`true`: registrations by bots are blocked',
    ),
  }),
  (values, { production }) => ({
    ...values,
    /** True if the first account on an empty database becomes the admin. */
    firstIsAdmin: !production && values.adminEmails.length === 0,
  }),
);

export type AccountSettings = SettingsOf<typeof accountSettings>;
