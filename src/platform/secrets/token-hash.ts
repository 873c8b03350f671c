import { createHash } from 'node:crypto';

/** Returns a token's SHA-256 in hex, for lookups. Only for tokens that cannot be guessed. */
export function tokenHash(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}
