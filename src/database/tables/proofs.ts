import { PLATFORM } from '../policies.js';
import { key, table, text, timestamp } from '../table.js';

/** Nonces that wallets have signed in with, until they would have ended. */
export const usedNonces = table(
  'used_nonces',
  {
    /** SHA-256 of it in hex. */
    id: key(text()),
    expiresAt: timestamp(),
  },
  [{ name: 'used_nonces_expires_at', fields: ['expires_at'] }],
  PLATFORM,
);
