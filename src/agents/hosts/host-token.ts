import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { SecretBox } from '../../platform/secrets/secret-box.js';

/** Milliseconds of a token's life: two machines' clocks may differ by that, less the tolerance. */
const LIFETIME_MS = 60_000;
const TOLERANCE_MS = 5_000;

const CONTEXT = 'host-token';
const NONCE_BYTES = 16;

/** Maximum number of used tokens to remember, more than a worker can serve within a token's life. */
const MAX_USED = 100_000;

/** The call that a token is valid for. */
export interface TokenClaim {
  /** Milliseconds since 1970. */
  readonly until: number;
  readonly nonce: string;
  /** SHA-256 of the call's body, in hex. */
  readonly digest: string;
}

/** Makes a token by which a caller proves to one host's worker, for one call, that it has the installation's key. */
export function hostToken(
  secrets: SecretBox,
  host: string,
  body: string,
  now = Date.now(),
): string {
  const nonce = randomBytes(NONCE_BYTES).toString('hex');
  const claim = `${now + LIFETIME_MS}.${nonce}.${bodyDigest(body)}`;
  return `${claim}.${secrets.digest(`${host} ${claim}`, CONTEXT)}`;
}

/** Returns the claim of a valid token for this host. The body and the nonce are the caller's to check. */
export function readHostToken(
  secrets: SecretBox,
  host: string,
  token: string,
  now = Date.now(),
): TokenClaim | undefined {
  const [, claim, digits, nonce, digest, proof] =
    /^((\d{1,15})\.([0-9a-f]{32})\.([0-9a-f]{64}))\.([0-9a-f]{64})$/.exec(token) ?? [];
  if (!claim || !nonce || !digest || !proof) return undefined;
  const until = Number(digits);
  if (until <= now || until > now + LIFETIME_MS + TOLERANCE_MS) return undefined;
  const isAuthentic = secrets
    .digests(`${host} ${claim}`, CONTEXT)
    .some((expected) => timingSafeEqual(Buffer.from(proof), Buffer.from(expected)));
  return isAuthentic ? { until, nonce, digest } : undefined;
}

export const isForBody = ({ digest }: TokenClaim, body: string): boolean =>
  digest === bodyDigest(body);

const bodyDigest = (body: string): string => createHash('sha256').update(body).digest('hex');

/** The tokens that a worker has accepted, for as long as they would be valid. */
export class UsedTokens {
  readonly #untilByNonce = new Map<string, number>();
  readonly #since: number;
  readonly #max: number;

  constructor({ now = Date.now(), max = MAX_USED } = {}) {
    this.#since = now;
    this.#max = max;
  }

  /** Reports whether no further token can be remembered for now. */
  isFull(now = Date.now()): boolean {
    for (const [nonce, until] of this.#untilByNonce) {
      if (until > now) break;
      this.#untilByNonce.delete(nonce);
    }
    return this.#untilByNonce.size >= this.#max;
  }

  /** Marks a token as used; returns false if it was used, or may have been used before a restart. */
  use({ nonce, until }: TokenClaim): boolean {
    if (this.#untilByNonce.has(nonce) || until - LIFETIME_MS < this.#since) return false;
    this.#untilByNonce.set(nonce, until);
    return true;
  }
}
