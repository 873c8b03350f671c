import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** Returns the token of `Authorization: Bearer <token>`; no other place is read. */
export function bearerOf(request: IncomingMessage): string | undefined {
  const header = request.headers.authorization;
  if (header === undefined || header.slice(0, 7).toLowerCase() !== 'bearer ') return undefined;
  return header.slice(7).trim() || undefined;
}

/** Hashing makes both sides equally long, so that timing does not reveal the key's length. */
const digest = (text: string) => createHash('sha256').update(text).digest();

/** Creates a constant-time matcher for the keys. Without keys it matches nothing. */
export function keyMatcher(keys: readonly string[]): (presented: string) => boolean {
  const expected = keys.map(digest);
  return (presented) => {
    const shown = digest(presented);
    // Compares all keys even after a match, to keep the time constant.
    return expected.map((each) => timingSafeEqual(shown, each)).includes(true);
  };
}

export function sameSecret(a: string, b: string): boolean {
  return timingSafeEqual(digest(a), digest(b));
}
