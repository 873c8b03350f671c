import { createHash } from 'node:crypto';

/** By which a token is found without being stored: SHA-256 in hex. For tokens nobody can guess. */
export function tokenHash(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}
