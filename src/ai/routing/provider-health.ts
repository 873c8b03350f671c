import type { Providers } from './route.js';
import type { ProviderName } from '../completion/provider-names.js';

/** An answer is kept for so many milliseconds: anybody may ask, and providers are others' machines. */
const KEEP_MS = 30_000;
const TIMEOUT_MS = 5_000;

export type ProviderHealth = Partial<Readonly<Record<ProviderName, boolean>>>;

/** Whether the configured providers can be reached. */
export class ProviderHealthCheck {
  #latest: { readonly at: number; readonly health: Promise<ProviderHealth> } | undefined;

  readonly #providers: Providers;

  constructor(providers: Providers) {
    this.#providers = providers;
  }

  check(): Promise<ProviderHealth> {
    if (this.#latest && performance.now() - this.#latest.at < KEEP_MS) return this.#latest.health;
    const health = this.#askAll();
    this.#latest = { at: performance.now(), health };
    return health;
  }

  async #askAll(): Promise<ProviderHealth> {
    const asked = Object.entries(this.#providers).map(async ([name, { baseUrl }]) => [
      name,
      await isReachable(baseUrl),
    ]);
    return Object.fromEntries(await Promise.all(asked)) as ProviderHealth;
  }
}

/** Whoever answers is there, also with a refusal: the key is not sent for this. */
async function isReachable(baseUrl: string): Promise<boolean> {
  try {
    const response = await fetch(`${baseUrl}/models`, {
      signal: AbortSignal.timeout(TIMEOUT_MS),
      redirect: 'manual',
    });
    await response.body?.cancel();
    return response.status < 500;
  } catch {
    return false; // which is what was asked
  }
}
