import { Readable } from 'node:stream';
import {
  createLocalJWKSet,
  errors,
  type CompactJWSHeaderParameters,
  type CryptoKey,
  type JSONWebKeySet,
} from 'jose';
import { ServiceError } from '../../lib/errors.js';
import { isObject, tryParseJson } from '../../lib/json.js';
import { readTextUpTo } from '../../lib/read-beginning.js';

/** Milliseconds for which keys are cached (spec section 8). */
const KEPT_MS = 24 * 60 * 60_000;
/** Milliseconds between two requests for the keys because of an unknown key id. */
const UNKNOWN_KEY_MS = 30_000;
/** Milliseconds after a failure before the keys are requested again. */
const FAILURE_MS = 5_000;
/** Milliseconds for the request of the configuration, and again for that of the keys. */
const TIMEOUT_MS = 5_000;
/** Maximum bytes of an answer; Google's are 2 kB. */
const MAX_BYTES = 256 * 1024;
const MAX_KEYS = 100;

/** 500: the token cannot be verified now; its sender retries. */
export class KeysUnavailableError extends ServiceError {
  override readonly name = 'KeysUnavailableError';

  constructor(options?: ErrorOptions) {
    super(
      500,
      'The keys of the identity provider are unavailable: retry later',
      undefined,
      {},
      options,
    );
  }
}

/** The provider has no key with that id and type. */
export class UnknownKeyError extends Error {
  override readonly name = 'UnknownKeyError';
}

type FindKey = (header: CompactJWSHeaderParameters) => Promise<CryptoKey>;

interface CachedKeys {
  readonly find: FindKey;
  readonly since: number;
}

export interface ProviderKeysOptions {
  /** URL of the provider's configuration, which contains the URL of its keys. */
  readonly configurationUrl: string;
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number;
  /** Milliseconds for each of the two requests. */
  readonly timeoutMs?: number;
}

/** The provider's keys for security events; concurrent callers share one request, and requests are limited. */
export class ProviderKeys {
  readonly #configurationUrl: string;
  readonly #now: () => number;
  readonly #timeoutMs: number;
  #known: CachedKeys | undefined;
  #fetching: Promise<CachedKeys> | undefined;
  #unknownRequestedAt = -Infinity;
  #failure: { readonly error: KeysUnavailableError; readonly at: number } | undefined;

  constructor({
    configurationUrl,
    now = () => performance.now(),
    timeoutMs = TIMEOUT_MS,
  }: ProviderKeysOptions) {
    this.#timeoutMs = timeoutMs;
    this.#configurationUrl = configurationUrl;
    this.#now = now;
  }

  /** Returns the key that a token's header names. @throws UnknownKeyError, KeysUnavailableError */
  async keyOf(header: CompactJWSHeaderParameters): Promise<CryptoKey> {
    const began = this.#now();
    const known = await this.#fresh();
    const found = await keyAmong(known, header);
    if (found) return found;
    const rotated = await this.#afterRotation(known, began);
    const key = rotated && (await keyAmong(rotated, header));
    if (!key) throw new UnknownKeyError('The provider does not publish this key');
    return key;
  }

  async #fresh(): Promise<CachedKeys> {
    if (this.#known && this.#now() - this.#known.since < KEPT_MS) return this.#known;
    return this.#load();
  }

  /** Returns keys newer than those without the key id; undefined if there are none yet. */
  async #afterRotation(known: CachedKeys, began: number): Promise<CachedKeys | undefined> {
    if (known.since >= began) return undefined;
    if (this.#known && this.#known !== known) return this.#known;
    if (this.#fetching) return this.#fetching;
    if (this.#now() - this.#unknownRequestedAt < UNKNOWN_KEY_MS) {
      // The failed request might have found the key.
      if (this.#failure) throw this.#failure.error;
      return undefined;
    }
    this.#unknownRequestedAt = this.#now();
    return this.#load();
  }

  /** Requests the keys, unless a request has just failed. @throws KeysUnavailableError */
  #load(): Promise<CachedKeys> {
    if (this.#fetching) return this.#fetching;
    if (this.#failure && this.#now() - this.#failure.at < FAILURE_MS) {
      return Promise.reject(this.#failure.error);
    }
    this.#fetching = this.#fetched().finally(() => (this.#fetching = undefined));
    return this.#fetching;
  }

  async #fetched(): Promise<CachedKeys> {
    try {
      this.#known = {
        find: await fetchKeys(this.#configurationUrl, this.#timeoutMs),
        since: this.#now(),
      };
      this.#failure = undefined;
      return this.#known;
    } catch (cause) {
      const error = new KeysUnavailableError({ cause });
      this.#failure = { error, at: this.#now() };
      throw error;
    }
  }
}

/** Returns the key that the header names, if there is exactly one. */
async function keyAmong(
  { find }: CachedKeys,
  header: CompactJWSHeaderParameters,
): Promise<CryptoKey | undefined> {
  try {
    return await find(header);
  } catch (error) {
    if (error instanceof errors.JWKSNoMatchingKey) return undefined;
    if (error instanceof errors.JWKSMultipleMatchingKeys) return undefined;
    // A key that cannot verify signatures is not the sender's fault.
    throw new KeysUnavailableError({ cause: error });
  }
}

async function fetchKeys(configurationUrl: string, timeoutMs: number): Promise<FindKey> {
  const { jwks_uri: address } = await fetchObject(configurationUrl, timeoutMs);
  if (typeof address !== 'string' || !mayFollow(configurationUrl, address)) {
    throw new TypeError('The configuration has no URL of keys');
  }
  const set = await fetchObject(address, timeoutMs);
  if (!isKeySet(set)) throw new TypeError('The answer is not a key set');
  return createLocalJWKSet(set);
}

/** Reports whether a URL may be followed: https must not lead to plain http. */
function mayFollow(from: string, address: string): boolean {
  if (!URL.canParse(address)) return false;
  const { protocol } = new URL(address);
  return protocol === 'https:' || (protocol === 'http:' && new URL(from).protocol === 'http:');
}

function isKeySet(value: object): value is JSONWebKeySet {
  return (
    'keys' in value &&
    Array.isArray(value.keys) &&
    value.keys.length <= MAX_KEYS &&
    value.keys.every(isObject)
  );
}

async function fetchObject(
  address: string,
  timeoutMs: number,
): Promise<Readonly<Record<string, unknown>>> {
  const response = await fetch(address, {
    headers: { accept: 'application/json' },
    redirect: 'error',
    signal: AbortSignal.timeout(timeoutMs),
  });
  if (response.status !== 200 || !response.body) {
    await response.body?.cancel();
    throw new TypeError(`The provider answered ${response.status}`);
  }
  const body = tryParseJson(await readTextUpTo(Readable.fromWeb(response.body), MAX_BYTES));
  if (!isObject(body)) throw new TypeError('The answer of the provider is not a JSON object');
  return body;
}
