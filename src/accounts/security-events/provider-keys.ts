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
import { readText } from '../../lib/read-beginning.js';

/** Spec section 8. */
const KEPT_MS = 24 * 60 * 60_000;
/** Between two times that keys are asked for because of one that is not among them. */
const UNKNOWN_KEY_MS = 30_000;
/** Between a failure and the next time that keys are asked for. */
const FAILURE_MS = 5_000;
/** For the answer with the configuration, and again for that with the keys. */
const TIMEOUT_MS = 5_000;
/** Google's are 2 kB. */
const MAX_BYTES = 256 * 1024;
const MAX_KEYS = 100;

/** 500: whether a token is good cannot be said now; its sender comes again. */
export class KeysUnavailableError extends ServiceError {
  constructor(options?: ErrorOptions) {
    super(500, 'The keys of the identity provider cannot be had', undefined, {}, options);
  }
}

/** The provider has no key of that name and kind. */
export class UnknownKeyError extends Error {
  override readonly name = 'UnknownKeyError';
}

type FindKey = (header: CompactJWSHeaderParameters) => Promise<CryptoKey>;

interface Known {
  readonly find: FindKey;
  readonly since: number;
}

export interface ProviderKeysOptions {
  /** Where the provider's configuration is, which names the address of its keys. */
  readonly configurationUrl: string;
  /** Milliseconds of a clock that never goes back. */
  readonly now?: () => number;
  /** For each of the two answers. */
  readonly timeoutMs?: number;
}

/**
 * The keys that a provider signs its security events with. However many ask, and for whatever keys, the
 * provider is asked by one at a time, and seldom.
 */
export class ProviderKeys {
  readonly #configurationUrl: string;
  readonly #now: () => number;
  readonly #timeoutMs: number;
  #known: Known | undefined;
  #asking: Promise<Known> | undefined;
  #askedForUnknownAt = -Infinity;
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

  /** The key that the header of a token names. @throws UnknownKeyError, KeysUnavailableError */
  async keyOf(header: CompactJWSHeaderParameters): Promise<CryptoKey> {
    const began = this.#now();
    const known = await this.#fresh();
    const found = await keyAmong(known, header);
    if (found) return found;
    const rotated = await this.#afterRotation(known, began);
    const key = rotated && (await keyAmong(rotated, header));
    if (!key) throw new UnknownKeyError('The provider has no such key');
    return key;
  }

  async #fresh(): Promise<Known> {
    if (this.#known && this.#now() - this.#known.since < KEPT_MS) return this.#known;
    return this.#ask();
  }

  /** Keys that are newer than those in which one is missing; undefined when there are none yet. */
  async #afterRotation(known: Known, began: number): Promise<Known | undefined> {
    if (known.since >= began) return undefined;
    if (this.#known && this.#known !== known) return this.#known;
    if (this.#asking) return this.#asking;
    if (this.#now() - this.#askedForUnknownAt < UNKNOWN_KEY_MS) {
      // What could not be asked may have been the very key.
      if (this.#failure) throw this.#failure.error;
      return undefined;
    }
    this.#askedForUnknownAt = this.#now();
    return this.#ask();
  }

  /** @throws KeysUnavailableError, also without having asked, when that has just failed. */
  #ask(): Promise<Known> {
    if (this.#asking) return this.#asking;
    if (this.#failure && this.#now() - this.#failure.at < FAILURE_MS) {
      return Promise.reject(this.#failure.error);
    }
    this.#asking = this.#fetched().finally(() => (this.#asking = undefined));
    return this.#asking;
  }

  async #fetched(): Promise<Known> {
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

/** The one key that the header names, if there is one. */
async function keyAmong(
  { find }: Known,
  header: CompactJWSHeaderParameters,
): Promise<CryptoKey | undefined> {
  try {
    return await find(header);
  } catch (error) {
    if (error instanceof errors.JWKSNoMatchingKey) return undefined;
    if (error instanceof errors.JWKSMultipleMatchingKeys) return undefined;
    // A key that nothing can be checked with: not the sender's fault.
    throw new KeysUnavailableError({ cause: error });
  }
}

async function fetchKeys(configurationUrl: string, timeoutMs: number): Promise<FindKey> {
  const { jwks_uri: address } = await fetchObject(configurationUrl, timeoutMs);
  if (typeof address !== 'string' || !mayFollow(configurationUrl, address)) {
    throw new TypeError('The configuration names no address of keys');
  }
  const set = await fetchObject(address, timeoutMs);
  if (!isKeySet(set)) throw new TypeError('The answer is no set of keys');
  return createLocalJWKSet(set);
}

/** What came over https does not lead to where anybody could answer. */
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
  const body = tryParseJson(await readText(Readable.fromWeb(response.body), MAX_BYTES));
  if (!isObject(body)) throw new TypeError('The provider answered no JSON object');
  return body;
}
