import type { Limits, RateLimit } from '../http/rate-limit.js';

/** Requests per client and minute if the contract (spec 8) states no number. */
const UNSTATED = 10;

const HOUR_MS = 60 * 60_000;
const DAY_MS = 24 * HOUR_MS;

/** The web API's rate limits (spec 8). */
export const LIMITS = {
  agents: perMinute('agents', 100),
  /** Shared by both chat endpoints, so that neither bypasses the limit. */
  chat: perMinute('chat', 60),
  gateway: perMinute('gateway', 100),
  instance: perMinute('instance', 30),
  register: unstated('register'),
  /** Limit for all endpoints that send mail to an entered address. */
  mail: unstated('mail'),
  resetPassword: unstated('reset-password'),
  settings: perMinute('settings', 60),
  /** Limit per user: each change may send two mails. */
  settingsOfUser: { ...perMinute('settings-of-user', 30), windowMs: HOUR_MS },
  /** Limit for all attempts; `SignInLimits` limits the failed ones. */
  signIn: [
    perMinute('sign-in', 60),
    { ...perMinute('sign-in-site', 120), by: 'site' },
  ] satisfies Limits,
  nonce: [perMinute('nonce', 60), { ...perMinute('nonce-site', 120), by: 'site' }] satisfies Limits,
  wallets: [
    perMinute('wallets', 60),
    { ...perMinute('wallets-site', 120), by: 'site' },
  ] satisfies Limits,
  /** Opening a session costs the operator a transaction, and holds the request for seconds. */
  paymentSessions: [
    perMinute('payment-sessions', 100),
    { ...perMinute('payment-sessions-site', 200), by: 'site' },
  ] satisfies Limits,
  /** Separate from sign-in, so that linking wallets does not use up the limit for signing in. */
  walletLink: [
    perMinute('wallet-link', 20),
    { ...perMinute('wallet-link-site', 40), by: 'site' },
  ] satisfies Limits,
  farcaster: [
    perMinute('farcaster', 30),
    { ...perMinute('farcaster-site', 60), by: 'site' },
  ] satisfies Limits,
  tokenGating: [
    perMinute('token-gating', 30),
    { ...perMinute('token-gating-site', 60), by: 'site' },
  ] satisfies Limits,
  /** With a daily limit, because wallets are free to create and each sign-in creates an account. */
  walletSignIn: [
    perMinute('wallet-sign-in', 60),
    { ...perMinute('wallet-sign-in-site', 120), by: 'site' },
    { ...perMinute('wallet-sign-in-day', 500), windowMs: DAY_MS },
    { ...perMinute('wallet-sign-in-site-day', 1_000), windowMs: DAY_MS, by: 'site' },
  ] satisfies Limits,
  /** Limit for the identity provider, which has few addresses and many events on a bad day. */
  securityEvents: perMinute('security-events', 600),
  export: perMinute('export', UNSTATED),
  demo: { ...perMinute('demo', UNSTATED), message: 'Too many requests' },
  /** Hashing a key with bcrypt takes a thread about 70 ms. */
  newKeys: perMinute('keys', UNSTATED),
  /** New keys per user, from any address. */
  newKeysOfUser: perMinute('keys-of-user', 60),
  /** Splits per user, from any address: each has up to 100 payouts. */
  splitsOfUser: perMinute('splits-of-user', 60),
};

function perMinute(name: string, max: number): RateLimit {
  return { name, max, windowMs: 60_000, message: 'Too many requests, please slow down.' };
}

/** Creates the limits of endpoints by which anonymous clients make us store or send data. */
function unstated(name: string): Limits {
  return [
    perMinute(name, UNSTATED),
    { ...perMinute(`${name}-site`, 2 * UNSTATED), by: 'site' },
    { ...perMinute(`${name}-day`, 200), windowMs: DAY_MS },
    { ...perMinute(`${name}-site-day`, 400), windowMs: DAY_MS, by: 'site' },
  ];
}
