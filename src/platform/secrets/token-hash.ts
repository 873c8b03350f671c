import { hash } from 'node:crypto';

/** Returns a token's SHA-256 in hex, for lookups. Only for tokens that cannot be guessed. */
export function tokenHash(token: string): string {
  return hash('sha256', token);
}
