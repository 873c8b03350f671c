/** Kinds of data with limited retention, in the order of removal. */
export const RETAINED = [
  'agents',
  'operations',
  'transitions',
  'messages',
  'usage',
  'audit',
  'sessions',
  'nonces',
  'farcaster',
  'security-events',
  'reset-mail-stops',
  'checkouts',
  'processor-events',
  'mail-tokens',
  'mails',
  'holds',
  'gas',
  'answers',
  'sums-of-answers',
  'payment-sessions',
  'payments',
  'x402-payments',
  'events',
  'accounts',
] as const;

export type RetainedKind = (typeof RETAINED)[number];
