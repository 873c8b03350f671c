import { expect, test } from 'vitest';
import { billingSettings } from '../../src/billing/settings.js';
import { readAreas } from '../../src/platform/environment/read.js';
import { SettingsError } from '../../src/platform/environment/settings-error.js';

const KEYS = { PAYPROC_SECRET_KEY: 'sk_live_1', PAYPROC_WEBHOOK_SECRET: 'whsec_1' };
const PRODUCTION = { NODE_ENV: 'production' };

const read = (env: Readonly<Record<string, string>>) =>
  readAreas({ billing: billingSettings }, env);

test('reads the old and the new secret of the webhook', () => {
  const { billing } = read({ ...KEYS, PAYPROC_WEBHOOK_SECRET: 'whsec_1, whsec_2' });
  expect(billing.webhookSecrets).toEqual(['whsec_1', 'whsec_2']);
});

test.each([
  ['the stand-in in production', { ...PRODUCTION, PAYPROC_SECRET_KEY: 'local' }, 'is local'],
  ['a key without a webhook', { PAYPROC_SECRET_KEY: 'sk_1' }, 'PAYPROC_WEBHOOK_SECRET is missing'],
  ['three secrets', { ...KEYS, PAYPROC_WEBHOOK_SECRET: 'a,b,c' }, 'must be one secret'],
  ['an address with a path', { ...KEYS, PAYPROC_API_URL: 'https://x.test/v1' }, 'have a path'],
  [
    'an address without TLS in production',
    { ...KEYS, ...PRODUCTION, PAYPROC_API_URL: 'http://pay.example' },
    'https://',
  ],
])('refuses %s', (_, env, fault) => {
  expect(() => read(env)).toThrow(SettingsError);
  expect(() => read(env)).toThrow(fault);
});

test('accepts the stand-in outside production', () => {
  expect(read({ PAYPROC_SECRET_KEY: 'local' }).billing.secretKey).toBe('local');
});

test('reads the days of grace and the prices of plans', () => {
  const { billing } = read({ ...KEYS, PAYPROC_PRICE_STORAGE_10GB: 'price_1' });
  expect([billing.graceDays, billing.planPrices['10gb'], billing.planPrices.solo]).toEqual([
    7,
    'price_1',
    undefined,
  ]);
  expect(read({ ...KEYS, PAYPROC_GRACE_DAYS: '0' }).billing.graceDays).toBe(0);
  for (const days of ['-1', '61', '7d']) {
    expect(() => read({ ...KEYS, PAYPROC_GRACE_DAYS: days })).toThrow('PAYPROC_GRACE_DAYS');
  }
});

test('refuses one price for two plans', () => {
  const env = { ...KEYS, PAYPROC_PRICE_SOLO: 'price_1', PAYPROC_PRICE_NETWORK: 'price_1' };
  expect(() => read(env)).toThrow('two plans have the same price id');
});
