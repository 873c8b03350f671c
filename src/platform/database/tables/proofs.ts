import { PLATFORM } from '../schema/policies.js';
import { bigint, created, index, key, nullable, table, text, timestamp } from '../schema/table.js';

/** Nonces of wallet sign-ins, stored until they expire. */
export const usedNonces = table(
  'used_nonces',
  {
    /** SHA-256 of the nonce in hex. */
    id: key(text()),
    expiresAt: timestamp(),
  },
  [index('used_nonces_expires_at', ['expires_at'])],
  PLATFORM,
);

/** Users who proved a Farcaster account: a row for each proof. */
export const farcasterTokens = table(
  'farcaster_tokens',
  {
    /** SHA-256 in hex of the common prefix of all tokens of the proof. */
    id: key(text()),
    /** SHA-256 of the valid token. */
    tokenHash: text(),
    fid: bigint(),
    /** Wallet that the proof named, in lower case. */
    address: nullable(text()),
    createdAt: created(),
    /** Expiry of the token. */
    expiresAt: timestamp(),
    /** Expiry of the proof. */
    endsAt: timestamp(),
  },
  [
    index('farcaster_tokens_fid', ['fid', 'created_at']),
    index('farcaster_tokens_expires_at', ['expires_at']),
  ],
  PLATFORM,
);
