import { createRemoteJWKSet, customFetch, errors, jwtVerify, type JWTVerifyGetKey } from 'jose';
import type { Hex } from 'viem';
import * as z from 'zod';
import { UnavailableError } from '../../../lib/errors.js';
import { strictCall, textOf } from '../../../platform/http/strict-call.js';

/** Whose key it is can be looked up by everybody: none that two sides share. */
const ALGORITHMS = ['RS256', 'ES256', 'EdDSA'];

/** For one look at the server's keys, in milliseconds. */
const KEYS_TIMEOUT_MS = 5_000;
const MAX_KEYS_BYTES = 64 * 1024;

/** For how long keys are taken to be the server's, and how seldom it is asked for ones that it lacked. */
const KEYS_KEPT_MS = 10 * 60_000;
const KEYS_ASKED_EVERY_MS = 30_000;

const CLOCK_SKEW_S = 60;

/** A Farcaster account, as Quick Auth names it. */
export interface FarcasterIdentity {
  readonly fid: number;
  /** The wallet by which they signed in there, in lower case; where the server names it. */
  readonly address: Hex | undefined;
}

const claims = z.object({
  // A number, unlike those of other issuers; text of digits is the same.
  sub: z.union([
    z.number().int().positive(),
    z
      .string()
      .regex(/^[1-9]\d{0,14}$/)
      .transform(Number),
  ]),
  address: z.unknown().optional(),
});

/** 503: the keys of the Quick Auth server cannot be had. */
export class KeysAwayError extends UnavailableError {
  constructor(options?: ErrorOptions) {
    super('Farcaster is unavailable', options);
  }
}

/** Proofs of Farcaster accounts: tokens that its Quick Auth server has issued for us. */
export class QuickAuth {
  readonly #issuer: string;
  readonly #audience: string;
  readonly #keyOf: JWTVerifyGetKey;

  /** @param server also the tokens' issuer. */
  constructor({ server, domain }: { readonly server: string; readonly domain: string }) {
    this.#issuer = server;
    this.#audience = domain;
    const keys = createRemoteJWKSet(new URL(`${server}/.well-known/jwks.json`), {
      timeoutDuration: KEYS_TIMEOUT_MS,
      cacheMaxAge: KEYS_KEPT_MS,
      cooldownDuration: KEYS_ASKED_EVERY_MS,
      [customFetch]: fetchKeys,
    });
    this.#keyOf = async (header, token) => {
      try {
        return await keys(header, token);
      } catch (cause) {
        // The keys are there, and none of them is meant.
        if (cause instanceof errors.JWKSNoMatchingKey) throw cause;
        if (cause instanceof errors.JWKSMultipleMatchingKeys) throw cause;
        if (cause instanceof errors.JOSENotSupported) throw cause;
        throw new KeysAwayError({ cause });
      }
    };
  }

  /** @returns undefined for what is no such token. @throws KeysAwayError */
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
  const isAddress = typeof claim === 'string' && /^0x[\da-fA-F]{40}$/.test(claim);
  return isAddress ? (claim.toLowerCase() as Hex) : undefined; // it begins with 0x
}

async function fetchKeys(url: string, { signal }: { signal: AbortSignal }): Promise<Response> {
  const accept = 'application/json';
  const { body, status } = await strictCall({ url, accept, maxBytes: MAX_KEYS_BYTES, signal });
  return new Response(body && (await textOf(body)), { status });
}
