import type { Limits, RateLimit } from '../http/rate-limit.js';

/** Requests of one client a minute where the contract (spec 8) states no number. */
const UNSTATED = 10;

const HOUR_MS = 60 * 60_000;
const DAY_MS = 24 * HOUR_MS;

/** The web API's rates (spec 8). */
export const LIMITS = {
  agents: perMinute('agents', 100),
  /** Both ways to ask agents share it, so that neither is a way around the other's. */
  chat: perMinute('chat', 60),
  gateway: perMinute('gateway', 100),
  instance: perMinute('instance', 30),
  register: unstated('register'),
  /** All that has mail sent to an address that was typed in. */
  mail: unstated('mail'),
  resetPassword: unstated('reset-password'),
  settings: perMinute('settings', 60),
  /** Of one user: each may bring two mails. */
  settingsOfUser: { ...perMinute('settings-of-user', 30), windowMs: HOUR_MS },
  /** Of all that is tried, beside what `SignInLimits` says of those that fail. */
  signIn: [
    perMinute('sign-in', 60),
    { ...perMinute('sign-in-site', 120), by: 'site' },
  ] satisfies Limits,
  nonce: [perMinute('nonce', 60), { ...perMinute('nonce-site', 120), by: 'site' }] satisfies Limits,
  wallets: [
    perMinute('wallets', 60),
    { ...perMinute('wallets-site', 120), by: 'site' },
  ] satisfies Limits,
  /** An opening costs the operator a transaction, and holds the request for seconds. */
  paymentSessions: [
    perMinute('payment-sessions', 100),
    { ...perMinute('payment-sessions-site', 200), by: 'site' },
  ] satisfies Limits,
  /** Not those of signing in: who links their wallets can still come back by them. */
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
  /** Those of a day because a wallet is made in no time, and has an account when it has signed in. */
  walletSignIn: [
    perMinute('wallet-sign-in', 60),
    { ...perMinute('wallet-sign-in-site', 120), by: 'site' },
    { ...perMinute('wallet-sign-in-day', 500), windowMs: DAY_MS },
    { ...perMinute('wallet-sign-in-site-day', 1_000), windowMs: DAY_MS, by: 'site' },
  ] satisfies Limits,
  /** The identity provider's, from a few addresses: those of a bad day. */
  securityEvents: perMinute('security-events', 600),
  export: perMinute('export', UNSTATED),
  demo: { ...perMinute('demo', UNSTATED), message: 'Too many requests' },
  /** To hash a key by bcrypt takes a thread some 70 ms. */
  newKeys: perMinute('keys', UNSTATED),
  /** The same of one user, from wherever. */
  newKeysOfUser: perMinute('keys-of-user', 60),
  /** What users have paid, from wherever: each has up to a hundred payouts. */
  splitsOfUser: perMinute('splits-of-user', 60),
};

function perMinute(name: string, max: number): RateLimit {
  return { name, max, windowMs: 60_000, message: 'Too many requests, please slow down.' };
}

/** Where strangers make us store or send something. */
function unstated(name: string): Limits {
  return [
    perMinute(name, UNSTATED),
    { ...perMinute(`${name}-site`, 2 * UNSTATED), by: 'site' },
    { ...perMinute(`${name}-day`, 200), windowMs: DAY_MS },
    { ...perMinute(`${name}-site-day`, 400), windowMs: DAY_MS, by: 'site' },
  ];
}
