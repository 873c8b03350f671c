import { address } from '../platform/environment/address.js';
import { area, variable, type SettingsOf } from '../platform/environment/area.js';
import {
  count,
  duration,
  entriesOf,
  text,
  textAs,
  textMatching,
} from '../platform/environment/types.js';
import { CREDIT_PRICES, type CreditPrice } from '../types/credit-prices.js';
import { PLAN_LIMITS, STORAGE_LIMITS, type Plan, type StoragePlan } from '../types/plans.js';

/** The secret key for which `npm start` starts a stand-in for the payment processor. */
export const LOCAL_KEY = 'local';

/** Maximum number of secrets of webhooks at a time: the old one and the new one. */
const MAX_SECRETS = 2;

const secrets = textAs('one secret, or two separated by a comma', (value) => {
  const entries = entriesOf(value);
  return entries.length >= 1 && entries.length <= MAX_SECRETS ? entries : undefined;
});

const priceId = textMatching(/^\w{1,255}$/, 'the id of a price at the payment processor');

const priceOf = (name: string, what: string) =>
  variable(`PAYPROC_PRICE_${name}`, priceId.optional(), `the processor's price of ${what}`, {
    whenUnset: 'the price is sent with each checkout',
  });

const price = (name: CreditPrice) =>
  priceOf(name.replace('-', '_').toUpperCase(), `credits for $${CREDIT_PRICES[name] / 100}`);

const planPrice = (plan: Plan) =>
  priceOf(
    plan.toUpperCase(),
    `the plan \`${plan}\`, £${PLAN_LIMITS[plan].monthlyPriceGbp} a month`,
  );

const storagePrice = (plan: StoragePlan) =>
  priceOf(
    `STORAGE_${plan.toUpperCase()}`,
    `the storage plan \`${plan}\`, £${STORAGE_LIMITS[plan].monthlyPriceGbp} a month`,
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
      { secret: true, whenUnset: 'credits and plans are not sold' },
    ),
    webhookSecrets: variable(
      'PAYPROC_WEBHOOK_SECRET',
      secrets.optional(),
      'signing secret of the webhook at `POST /api/wallet/top-up`; the old and the new one, separated by a comma, while the secret is changed',
      { secret: true, whenUnset: 'credits and plans are not sold' },
    ),
    resaleDelayMs: variable(
      'CREDITS_RESALE_DELAY',
      duration.prefault('24h'),
      'minimum age of a payment before its credits may buy actions that pay a third party (`x402`): a recent payment may still be disputed',
    ),
    graceDays: variable(
      'PAYPROC_GRACE_DAYS',
      count({ least: 0, most: 60 }).prefault('7'),
      'days for which an unpaid plan stays valid, from the start of the unpaid period',
    ),
    prices: {
      'credits-500': price('credits-500'),
      'credits-1000': price('credits-1000'),
      'credits-2500': price('credits-2500'),
      'credits-5000': price('credits-5000'),
    },
    planPrices: {
      label: planPrice('label'),
      solo: planPrice('solo'),
      collective: planPrice('collective'),
      network: planPrice('network'),
      '10gb': storagePrice('10gb'),
      '50gb': storagePrice('50gb'),
      '200gb': storagePrice('200gb'),
    },
  }),
  undefined,
  ({ apiUrl, planPrices, secretKey, webhookSecrets }, { production }) => [
    ...(hasRepetition(Object.values(planPrices))
      ? ['PAYPROC_PRICE_*: two plans have the same price id, so that neither can be recognized']
      : []),
    ...(apiUrl !== undefined && new URL(apiUrl).pathname !== '/'
      ? ['PAYPROC_API_URL must not have a path']
      : []),
    ...(production && secretKey === LOCAL_KEY
      ? [
          `PAYPROC_SECRET_KEY is ${LOCAL_KEY}, which is for development only: set the secret key of an account at the payment processor`,
        ]
      : []),
    ...(secretKey !== undefined && secretKey !== LOCAL_KEY && webhookSecrets === undefined
      ? ['PAYPROC_WEBHOOK_SECRET is missing: without it payments are neither noticed nor credited']
      : []),
  ],
);

function hasRepetition(prices: readonly (string | undefined)[]): boolean {
  const set = prices.filter((each) => each !== undefined);
  return new Set(set).size < set.length;
}

export type BillingSettings = SettingsOf<typeof billingSettings>;
