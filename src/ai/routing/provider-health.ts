import type { ProviderName, Providers } from '../completion/provider-names.js';

/** Results are cached, because anybody may call the check and providers are external. */
const KEEP_MS = 30_000;
const TIMEOUT_MS = 5_000;

export type ProviderHealth = Partial<Readonly<Record<ProviderName, boolean>>>;

export class ProviderHealthCheck {
  #latest: { readonly at: number; readonly health: Promise<ProviderHealth> } | undefined;

  readonly #providers: Providers;

  constructor(providers: Providers) {
    this.#providers = providers;
  }

  check(): Promise<ProviderHealth> {
    if (this.#latest && performance.now() - this.#latest.at < KEEP_MS) return this.#latest.health;
    const health = this.#probeAll();
    this.#latest = { at: performance.now(), health };
    return health;
  }

  async #probeAll(): Promise<ProviderHealth> {
    const probes = Object.entries(this.#providers).map(async ([name, { baseUrl }]) => [
      name,
      await isReachable(baseUrl),
    ]);
    return Object.fromEntries(await Promise.all(probes)) as ProviderHealth;
  }
}

/** Reports whether a provider responds; an error below 500 counts, because the check sends no key. */
async function isReachable(baseUrl: string): Promise<boolean> {
  try {
    const response = await fetch(`${baseUrl}/models`, {
      signal: AbortSignal.timeout(TIMEOUT_MS),
      redirect: 'manual',
    });
    await response.body?.cancel();
    return response.status < 500;
  } catch {
    return false; // an unreachable provider is a valid result
  }
}
