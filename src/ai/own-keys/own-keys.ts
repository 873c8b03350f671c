import type { SealedOwnKeys } from '../../types/sealed-own-keys.js';
import type { SecretBox } from '../../platform/secrets/secret-box.js';
import {
  isProviderName,
  PROVIDER_BASE_URLS,
  type ProviderConfig,
  type ProviderName,
  type Providers,
} from '../completion/provider-names.js';

export const ownKeyContext = (userId: string, provider: string): string =>
  `provider-key:${userId}:${provider}`;

/** Returns the configuration of a provider with a user's key, at the address that the operator has set. */
export const withOwnKey = (
  providers: Providers,
  name: ProviderName,
  apiKey: string,
): ProviderConfig => ({
  baseUrl: providers[name]?.baseUrl ?? PROVIDER_BASE_URLS[name],
  apiKey,
});

/** The keys that a caller has brought. They are private, so that no log shows them. */
export class OwnKeys {
  readonly #keys: ReadonlyMap<ProviderName, string>;

  private constructor(keys: ReadonlyMap<ProviderName, string>) {
    this.#keys = keys;
  }

  static readonly none = new OwnKeys(new Map());

  /** Decrypts a user's keys. @throws SecretUnreadableError: the platform's key must not replace them. */
  static open(secrets: SecretBox, userId: string, sealed: SealedOwnKeys | undefined): OwnKeys {
    if (sealed === undefined) return OwnKeys.none;
    const keys = Object.entries(sealed).flatMap(([name, key]) =>
      isProviderName(name) ? [[name, secrets.open(key, ownKeyContext(userId, name))] as const] : [],
    );
    return new OwnKeys(new Map(keys));
  }

  get providers(): readonly ProviderName[] {
    return [...this.#keys.keys()];
  }

  has(name: ProviderName): boolean {
    return this.#keys.has(name);
  }

  /** Returns the platform's providers, those of the keys with the keys. */
  addTo(providers: Providers): Providers {
    if (this.#keys.size === 0) return providers;
    const all: Partial<Record<ProviderName, ProviderConfig>> = { ...providers };
    for (const [name, key] of this.#keys) all[name] = withOwnKey(providers, name, key);
    return all;
  }
}
