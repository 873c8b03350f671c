import { timingSafeEqual } from 'node:crypto';
import type { SecretBox } from '../../platform/secrets/secret-box.js';

/**
 * Milliseconds for which a token is valid. Two machines' clocks may differ by that much, less the
 * tolerance.
 */
const LIFETIME_MS = 60_000;
const TOLERANCE_MS = 5_000;

const CONTEXT = 'host-token';

/**
 * Makes a token, valid for 60 s, that proves to one host's worker that the caller has an encryption key
 * of the installation. The key itself is not sent.
 */
export function hostToken(secrets: SecretBox, host: string, now = Date.now()): string {
  const until = now + LIFETIME_MS;
  return `${until}.${secrets.digest(`${host} ${until}`, CONTEXT)}`;
}

/** Reports whether the token is valid for this host now. */
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
