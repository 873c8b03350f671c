import { timingSafeEqual } from 'node:crypto';
import type { SecretBox } from '../../platform/secrets/secret-box.js';

/** What a token is good for; clocks of two machines may differ by as much, less the tolerance. */
const LIFETIME_MS = 60_000;
const TOLERANCE_MS = 5_000;

const CONTEXT = 'host-token';

/**
 * Proves to the worker of one host for 60 s that the caller has an encryption key of the
 * installation, which does not leave the process.
 */
export function hostToken(secrets: SecretBox, host: string, now = Date.now()): string {
  const until = now + LIFETIME_MS;
  return `${until}.${secrets.digest(`${host} ${until}`, CONTEXT)}`;
}

/** Whether it is a token for this host that is good now. */
export function isHostToken(
  secrets: SecretBox,
  host: string,
  token: string,
  now = Date.now(),
): boolean {
  const [, digits = '', digest = ''] = /^(\d{1,15})\.([0-9a-f]{64})$/.exec(token) ?? [];
  const until = Number(digits);
  if (digest === '' || until <= now || until > now + LIFETIME_MS + TOLERANCE_MS) return false;
  return secrets
    .digests(`${host} ${digits}`, CONTEXT)
    .some((expected) => timingSafeEqual(Buffer.from(digest), Buffer.from(expected)));
}
