import { timingSafeEqual } from 'node:crypto';
import type { SecretBox } from '../../platform/secrets/secret-box.js';

/** Milliseconds of a token's life: two machines' clocks may differ by that, less the tolerance. */
const LIFETIME_MS = 60_000;
const TOLERANCE_MS = 5_000;

const CONTEXT = 'host-token';

/** Makes a token by which a caller proves to one host's worker that it has the installation's key. */
export function hostToken(secrets: SecretBox, host: string, now = Date.now()): string {
  const until = now + LIFETIME_MS;
  return `${until}.${secrets.digest(`${host} ${until}`, CONTEXT)}`;
}

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
