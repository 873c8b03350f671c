import { PLATFORM } from '../schema/policies.js';
import { index, key, nullable, table, text, timestamp } from '../schema/table.js';

/** Links that make an address of ADMIN_EMAILS an admin. */
export const adminLinks = table(
  'admin_links',
  {
    email: key(text()),
    /** SHA-256 of its token in hex. */
    tokenHash: text(),
    expiresAt: timestamp(),
  },
  [],
  PLATFORM,
);

/** Failed sign-ins by subject (an account, a host and so on), until they have drained. */
export const signInAttempts = table(
  'sign_in_attempts',
  {
    subject: key(text()),
    /** Time when all attempts have drained: the count is how far this is ahead. */
    drainedAt: timestamp(),
    blockedUntil: nullable(timestamp()),
  },
  [index('sign_in_attempts_drained_at', ['drained_at'])],
  PLATFORM,
);
