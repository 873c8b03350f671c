/** What is kept for a time only, in the order in which it is removed. */
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
  'mail-tokens',
  'mails',
  'holds',
] as const;

export type Retained = (typeof RETAINED)[number];
