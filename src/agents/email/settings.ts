import { normalizeEmail, isEmail } from '../../accounts/accounts/email.js';
import { address } from '../../platform/environment/address.js';
import { area, variable, type SettingsOf } from '../../platform/environment/area.js';
import { entriesOf, textAs, textMatching } from '../../platform/environment/types.js';
import { webhookSecrets } from '../../platform/webhooks/webhook-secrets.js';

/** The key for which `npm start` starts a stand-in for the provider. */
export const LOCAL_EMAIL_KEY = 'local';

const DOMAIN = /^[a-z\d](?:[a-z\d-]*[a-z\d])?(?:\.[a-z\d](?:[a-z\d-]*[a-z\d])?)+$/;

const domain = textAs('a domain', (value) => {
  const normalized = value.toLowerCase();
  return normalized.length <= 253 && DOMAIN.test(normalized) ? normalized : undefined;
});

/** `a@example.com, @example.org` */
const senders = textAs('addresses, or domains after an @, separated by commas', (value) => {
  const entries = entriesOf(value).map(normalizeEmail);
  const isKnown = (entry: string) =>
    entry.startsWith('@') ? DOMAIN.test(entry.slice(1)) : isEmail(entry);
  return entries.every(isKnown) ? new Set(entries) : undefined;
});

export const emailSettings = area(
  'E-mail to agents',
  (mode) => ({
    apiUrl: variable(
      'EMAIL_API_URL',
      address(mode, 'http', 'https').prefault('https://api.resend.com'),
      'address of the API of Resend, which receives and sends the e-mails of agents',
    ),
    apiKey: variable(
      'EMAIL_API_KEY',
      textMatching(/^[\x21-\x7e]{1,500}$/, '1 to 500 visible ASCII characters').optional(),
      `key of the account at Resend; \`${LOCAL_EMAIL_KEY}\` makes \`npm start\` start a stand-in for it`,
      { secret: true, whenUnset: 'agents get no e-mails' },
    ),
    webhookSecrets: variable(
      'EMAIL_WEBHOOK_SECRET',
      webhookSecrets.optional(),
      'signing secret of the webhook at `POST /api/webhooks/email`; the old and the new one, separated by a comma, while the secret is changed',
      { secret: true, whenUnset: 'agents get no e-mails' },
    ),
    domain: variable(
      'EMAIL_DOMAIN',
      domain.optional(),
      "domain of agents' addresses, `<subdomain>@<EMAIL_DOMAIN>`, whose mail Resend receives",
      { whenUnset: 'agents get no e-mails' },
    ),
    allowedSenders: variable(
      'EMAIL_ALLOWED_SENDERS',
      senders.prefault(''),
      'senders that every agent answers, besides the verified address of its owner: `a@example.com, @example.org`',
    ),
    authservId: variable(
      'EMAIL_AUTHSERV_ID',
      textMatching(/^[\w.:-]{1,253}$/, 'the name of a mail server').optional(),
      'name of the receiving mail server in the `Authentication-Results` header of a mail; only results of this server prove a sender; required in production with `EMAIL_API_KEY`',
      { whenUnset: 'in development only, a mail without such a header counts as proven' },
    ),
  }),
  (values, { production }) => ({
    ...values,
    /** True if a sender has to be proven also in a mail without results. */
    requiresProof: production,
  }),
  ({ apiKey, authservId }, { production }) => [
    ...(production && apiKey !== undefined && authservId === undefined
      ? [
          'EMAIL_AUTHSERV_ID is missing: without it the sender of no e-mail can be proven. Set it, or unset EMAIL_API_KEY',
        ]
      : []),
    ...(production && apiKey === LOCAL_EMAIL_KEY
      ? [
          `EMAIL_API_KEY is ${LOCAL_EMAIL_KEY}, which is for development only: set the key of an account at Resend`,
        ]
      : []),
  ],
);

export type EmailSettings = SettingsOf<typeof emailSettings>;
