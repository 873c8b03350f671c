import { createHash } from 'node:crypto';

/**
 * Returns the SHA-256 of a token in hex, to find it without storing it. Only for tokens that cannot be
 * guessed.
 */
export function tokenHash(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}
