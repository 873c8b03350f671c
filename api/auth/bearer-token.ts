import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** The token of `Authorization: Bearer <token>`; never looked for anywhere else. */
export function bearerOf(request: IncomingMessage): string | undefined {
  const header = request.headers.authorization;
  if (header === undefined || header.slice(0, 7).toLowerCase() !== 'bearer ') return undefined;
  return header.slice(7).trim() || undefined;
}

/** Hashing both sides makes them equally long, so that not even the length shows in the time. */
const digest = (text: string) => createHash('sha256').update(text).digest();

/** Compares what callers present with these keys, in constant time. Without a key nothing matches. */
export function keyMatcher(keys: readonly string[]): (presented: string) => boolean {
  const expected = keys.map(digest);
  return (presented) => {
    const shown = digest(presented);
    // Each is compared, whichever matches.
    return expected.map((each) => timingSafeEqual(shown, each)).includes(true);
  };
}

export function sameSecret(a: string, b: string): boolean {
  return timingSafeEqual(digest(a), digest(b));
}
