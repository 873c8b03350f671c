import type { RateLimit } from '../http/rate-limit.js';

/** Requests per client and minute if the contract (spec 8) states no number. */
const UNSTATED = 10;

const HOUR_MS = 60 * 60_000;
const DAY_MS = 24 * HOUR_MS;

/** The web API's rate limits (spec 8). */
export const LIMITS = {
  agents: perMinute('agents', 100),
  browse: perMinute('browse', 100),
  dataFeeds: perMinute('data-feeds', 100),
  provision: perMinute('provision', 5),
  chat: perMinute('chat', 60),
  agent: perMinute('agent', 60),
  gateway: perMinute('gateway', 100),
  /** Runs per payment session or user, from any address, that are refused for their input and so are free. */
  refusedRuns: perMinute('refused-runs', 100),
  /** Invalid API keys per user, from any address, at the endpoint that validates keys. */
  refusedKeys: perMinute('refused-keys', 60),
  x402: perHostAndSite('x402', 60),
  x402Health: perHostAndSite('x402-health', 60),
  instance: perMinute('instance', 30),
  register: unstated('register'),
  /** Limit for all endpoints that send mail to an entered address. */
  mail: unstated('mail'),
  resetPassword: unstated('reset-password'),
  settings: perMinute('settings', 60),
  /** Limit per user: each change may send two mails. */
  settingsOfUser: { ...perMinute('settings-of-user', 30), windowMs: HOUR_MS },
  /** Limit for all attempts; `SignInLimits` limits the failed ones. */
  signIn: perHostAndSite('sign-in', 60),
  nonce: perHostAndSite('nonce', 60),
  wallets: perHostAndSite('wallets', 60),
  /** Opening a session costs the operator a transaction, and holds the request for seconds. */
  paymentSessions: perHostAndSite('payment-sessions', 100),
  /** Separate from sign-in, so that linking wallets does not use up the limit for signing in. */
  walletLink: perHostAndSite('wallet-link', 20),
  farcaster: perHostAndSite('farcaster', 30),
  tokenGating: perHostAndSite('token-gating', 30),
  /** With a daily limit, because wallets are free to create and each sign-in creates an account. */
  walletSignIn: [...perHostAndSite('wallet-sign-in', 60), ...perDay('wallet-sign-in', 500)],
  /** Limit for the identity provider, which has few addresses and may send many events concurrently. */
  securityEvents: perMinute('security-events', 600),
  billingOfUser: perMinute('billing-of-user', 30),
  /** Limit for the payment processor, which has few addresses. */
  processorEvents: perMinute('processor-events', 6_000),
  /** New checkouts per user, from any address. */
  checkoutsOfUser: perMinute('checkouts-of-user', 30),
  export: perMinute('export', UNSTATED),
  demo: { ...perMinute('demo', UNSTATED), message: 'Too many requests' },
  /** Hashing a key with bcrypt occupies a thread for about 70 ms. */
  newKeys: perMinute('keys', UNSTATED),
  /** New keys per user, from any address. */
  newKeysOfUser: perMinute('keys-of-user', 60),
  /** Verifications per user, from any address and by all keys. */
  verificationsOfUser: perMinute('verifications-of-user', UNSTATED),
  radio: perMinute('radio', 100),
  /** New and deleted streams per user, from any address and by all keys. */
  radioStreamsOfUser: perMinute('radio-streams-of-user', 30),
  /** Limit for a provider whose webhooks the platform receives, which has few addresses. */
  providerEvents: perMinute('provider-events', 6_000),
  videos: perMinute('videos', 100),
  /** New videos per user, from any address and by all keys. */
  videosOfUser: perMinute('videos-of-user', 30),
  swarms: perMinute('swarms', 60),
  /** New swarms and changes per user, from any address and by all keys. */
  swarmsOfUser: perMinute('swarms-of-user', 30),
  /** Changes of scheduled tasks per user, from any address: each may start a turn. */
  tasksOfUser: perMinute('tasks-of-user', 60),
  /** Requests about memories per user, from any address: each is a call of a container. */
  memoryOfUser: perMinute('memory-of-user', 100),
  /** Metrics per user, from any address: each request sums up a day. */
  metricsOfUser: perMinute('metrics-of-user', 60),
  /** Views of the fleet per user, from any address: each sums up a month, or reads a history. */
  fleetOfUser: perMinute('fleet-of-user', 60),
  skills: perMinute('skills', 100),
  /** Requests about skills per user, from any address and by all keys. */
  skillsOfUser: perMinute('skills-of-user', 60),
  /** Splits per user, from any address: each has up to 100 payouts. */
  splitsOfUser: perMinute('splits-of-user', 60),
};

function perMinute(name: string, max: number): RateLimit {
  return { name, max, windowMs: 60_000, message: 'Too many requests, please slow down.' };
}

/** Creates the limit of a host, and twice as much for its site. */
function perHostAndSite(name: string, max: number): readonly RateLimit[] {
  return [perMinute(name, max), { ...perMinute(`${name}-site`, 2 * max), by: 'site' }];
}

function perDay(name: string, max: number): readonly RateLimit[] {
  return [
    { ...perMinute(`${name}-day`, max), windowMs: DAY_MS },
    { ...perMinute(`${name}-site-day`, 2 * max), windowMs: DAY_MS, by: 'site' },
  ];
}

/** Creates the limits of endpoints by which anonymous clients make us store or send data. */
function unstated(name: string): readonly RateLimit[] {
  return [...perHostAndSite(name, UNSTATED), ...perDay(name, 200)];
}
