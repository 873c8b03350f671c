import { createRemoteJWKSet, customFetch, errors, jwtVerify, type JWTVerifyGetKey } from 'jose';
import type { Hex } from 'viem';
import * as z from 'zod';
import { UnavailableError } from '../../../lib/errors.js';
import { parseAddress } from '../../../money/chain/address.js';
import { boundedRequest, textOf } from '../../../platform/http/strict-call.js';

/** Signature algorithms with public keys only; a shared secret proves nothing about the issuer. */
const ALGORITHMS = ['RS256', 'ES256', 'EdDSA'];

/** Milliseconds for one request to the server's keys. */
const KEYS_TIMEOUT_MS = 5_000;
const MAX_KEYS_BYTES = 64 * 1024;

/** Milliseconds for which keys are cached, and the least time between two requests for an unknown key. */
const KEYS_KEPT_MS = 10 * 60_000;
const KEYS_FETCHED_EVERY_MS = 30_000;

const CLOCK_SKEW_S = 60;

export interface FarcasterIdentity {
  readonly fid: number;
  /** The wallet of the sign-in, in lower case, if the server names one. */
  readonly address: Hex | undefined;
}

const claims = z.object({
  // Quick Auth sends a number, other issuers send text; digits in text are accepted as well.
  sub: z.union([
    z.number().int().positive(),
    z
      .string()
      .regex(/^[1-9]\d{0,14}$/)
      .transform(Number),
  ]),
  address: z.unknown().optional(),
});

/** 503: the keys of the Quick Auth server cannot be fetched. */
export class KeysUnavailableError extends UnavailableError {
  override readonly name = 'KeysUnavailableError';

  constructor(options?: ErrorOptions) {
    super('Farcaster is unavailable: retry later', options);
  }
}

/** A verifier of Farcaster accounts: accepts tokens that Quick Auth issued for this service's domain. */
export class QuickAuth {
  readonly #issuer: string;
  readonly #audience: string;
  readonly #keyOf: JWTVerifyGetKey;

  /** @param server the Quick Auth server's URL, also the issuer of its tokens. */
  constructor({ server, domain }: { readonly server: string; readonly domain: string }) {
    this.#issuer = server;
    this.#audience = domain;
    const keys = createRemoteJWKSet(new URL(`${server}/.well-known/jwks.json`), {
      timeoutDuration: KEYS_TIMEOUT_MS,
      cacheMaxAge: KEYS_KEPT_MS,
      cooldownDuration: KEYS_FETCHED_EVERY_MS,
      [customFetch]: fetchKeys,
    });
    this.#keyOf = async (header, token) => {
      try {
        return await keys(header, token);
      } catch (cause) {
        // The keys were fetched, but no single key matches the token.
        if (cause instanceof errors.JWKSNoMatchingKey) throw cause;
        if (cause instanceof errors.JWKSMultipleMatchingKeys) throw cause;
        if (cause instanceof errors.JOSENotSupported) throw cause;
        throw new KeysUnavailableError({ cause });
      }
    };
  }

  /** Verifies a Quick Auth token. @returns undefined for an invalid token. @throws KeysUnavailableError */
  async verify(token: string): Promise<FarcasterIdentity | undefined> {
    try {
      const { payload } = await jwtVerify(token, this.#keyOf, {
        algorithms: ALGORITHMS,
        issuer: this.#issuer,
        audience: this.#audience,
        requiredClaims: ['exp', 'sub'],
        clockTolerance: CLOCK_SKEW_S,
      });
      const said = claims.safeParse(payload);
      if (!said.success) return undefined;
      return { fid: said.data.sub, address: addressIn(said.data.address) };
    } catch (error) {
      if (error instanceof errors.JOSEError) return undefined;
      throw error;
    }
  }
}

function addressIn(claim: unknown): Hex | undefined {
  return typeof claim === 'string' ? parseAddress(claim) : undefined;
}

async function fetchKeys(url: string, { signal }: { signal: AbortSignal }): Promise<Response> {
  const accept = 'application/json';
  const { body, status } = await boundedRequest({ url, accept, maxBytes: MAX_KEYS_BYTES, signal });
  return new Response(body && (await textOf(body)), { status });
}
