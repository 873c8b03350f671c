import { PLATFORM } from '../schema/policies.js';
import { bigint, created, key, nullable, table, text, timestamp } from '../schema/table.js';

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

/** What is known of those who have proven a Farcaster account: a row for each proof. */
export const farcasterTokens = table(
  'farcaster_tokens',
  {
    /** SHA-256 of what all tokens of the proof begin with, in hex. */
    id: key(text()),
    /** SHA-256 of the one that is good. */
    tokenHash: text(),
    fid: bigint(),
    /** The wallet that the proof named, in lower case. */
    address: nullable(text()),
    createdAt: created(),
    /** Of the token. */
    expiresAt: timestamp(),
    /** Of the proof. */
    endsAt: timestamp(),
  },
  [
    { name: 'farcaster_tokens_fid', fields: ['fid', 'created_at'] },
    { name: 'farcaster_tokens_expires_at', fields: ['expires_at'] },
  ],
  PLATFORM,
);
