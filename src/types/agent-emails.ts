/**
 * States of an e-mail to an agent: `received` (its text is not read yet), `asking`, `answering` (the answer is to be
 * sent), and the ends.
 */
export const EMAIL_STATUSES = [
  'received',
  'asking',
  'answering',
  'answered',
  'refused',
  'skipped',
  'failed',
] as const;

export type EmailStatus = (typeof EMAIL_STATUSES)[number];

/** Outcomes of an event about a new mail. */
export type EmailReceipt = 'stored' | 'duplicate' | 'recipient' | 'sender' | 'rate';

/** Reasons for which an event of the provider has no effect. */
export type EmailReason = Exclude<EmailReceipt, 'stored'> | 'unknown' | 'event';
