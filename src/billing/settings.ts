import { address } from '../platform/environment/address.js';
import { area, variable, type SettingsOf } from '../platform/environment/area.js';
import { duration, entriesOf, text, textAs, textMatching } from '../platform/environment/types.js';
import { CREDIT_PRICES, type CreditPrice } from '../types/credit-prices.js';

/** The secret key for which `npm start` starts a stand-in for the payment processor. */
export const LOCAL_KEY = 'local';

/** Most secrets of webhooks at a time: the old one and the new one. */
const MAX_SECRETS = 2;

const secrets = textAs('one secret, or two separated by a comma', (value) => {
  const entries = entriesOf(value);
  return entries.length >= 1 && entries.length <= MAX_SECRETS ? entries : undefined;
});

const priceId = textMatching(/^\w{1,255}$/, 'the id of a price at the payment processor');

const price = (name: CreditPrice) =>
  variable(
    `PAYPROC_PRICE_${name.replace('-', '_').toUpperCase()}`,
    priceId.optional(),
    `the processor's price of credits for $${CREDIT_PRICES[name] / 100}`,
    { whenUnset: 'the price is sent with each checkout' },
  );

export const billingSettings = area(
  'Payment processor',
  (mode) => ({
    apiUrl: variable(
      'PAYPROC_API_URL',
      address(mode, 'http', 'https').optional(),
      "address of the payment processor's API, without a path",
      { whenUnset: 'https://api.stripe.com' },
    ),
    secretKey: variable(
      'PAYPROC_SECRET_KEY',
      text.optional(),
      `secret key of the platform's account at the payment processor (Stripe); \`${LOCAL_KEY}\` makes \`npm start\` start a stand-in for it`,
      { secret: true, whenUnset: 'no credits are sold' },
    ),
    webhookSecrets: variable(
      'PAYPROC_WEBHOOK_SECRET',
      secrets.optional(),
      'signing secret of the webhook at `POST /api/wallet/top-up`; the old and the new one, separated by a comma, while the secret is changed',
      { secret: true, whenUnset: 'no credits are sold' },
    ),
    resaleDelayMs: variable(
      'CREDITS_RESALE_DELAY',
      duration.prefault('24h'),
      'age of a payment from which its credits buy what others are paid for (`x402`): a young payment may still be disputed',
    ),
    prices: {
      'credits-500': price('credits-500'),
      'credits-1000': price('credits-1000'),
      'credits-2500': price('credits-2500'),
      'credits-5000': price('credits-5000'),
    },
  }),
  undefined,
  ({ apiUrl, secretKey, webhookSecrets }, { production }) => [
    ...(apiUrl !== undefined && new URL(apiUrl).pathname !== '/'
      ? ['PAYPROC_API_URL must not have a path']
      : []),
    ...(production && secretKey === LOCAL_KEY
      ? [
          `PAYPROC_SECRET_KEY is ${LOCAL_KEY}, which is for development only: set the secret key of an account at the payment processor`,
        ]
      : []),
    ...(secretKey !== undefined && secretKey !== LOCAL_KEY && webhookSecrets === undefined
      ? [
          'PAYPROC_WEBHOOK_SECRET is missing: without it payments are not noticed, and credited to nobody',
        ]
      : []),
  ],
);

export type BillingSettings = SettingsOf<typeof billingSettings>;
