import type { Logger } from 'pino';
import type { PrivateHosts } from '../../platform/environment/private-hosts.js';
import {
  PROVIDER_BASE_URLS,
  type ProviderConfig,
  type ProviderName,
  type Providers,
} from '../completion/provider-names.js';
import { requestList, type ListAnswer } from './request-list.js';
import type { Models } from './models.js';
import { isPrivateServer } from './private-server.js';

const EVERY_MS = 5 * 60_000;

export interface DiscoveryParts {
  readonly models: Models;
  readonly providers: Providers;
  readonly privateHosts: PrivateHosts;
  readonly log: Logger;
}

/**
 * Keeps the models in step with the lists of providers on this machine or a private network. Other providers
 * serve the models of the catalogue, because the operator pays for them.
 */
export class ModelDiscovery {
  readonly #parts: DiscoveryParts;
  readonly #states = new Map<ProviderName, ListAnswer['state']>();
  readonly #withoutList = new Set<ProviderName>();
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: DiscoveryParts) {
    this.#parts = parts;
  }

  /** Requests all lists, and again every five minutes until `close`. */
  async start(): Promise<void> {
    this.#timer = setInterval(() => void this.refresh(), EVERY_MS).unref();
    await this.refresh();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** Requests all lists once, at the same time. A provider without a list keeps its models. */
  async refresh(): Promise<void> {
    await Promise.all(this.#configured().map(([name, config]) => this.#refreshOne(name, config)));
  }

  /**
   * Returns the state of each provider; providers at public addresses that were never queried are queried
   * now.
   */
  async states(): Promise<ReadonlyMap<ProviderName, ListAnswer['state']>> {
    await Promise.all(
      this.#configured()
        .filter(([name]) => !this.#states.has(name))
        .map(async ([name, config]) => {
          this.#states.set(name, (await requestList(name, config)).state);
        }),
    );
    return this.#states;
  }

  #configured(): [ProviderName, ProviderConfig][] {
    // Object.entries loses the type of its keys, which are provider names.
    return Object.entries(this.#parts.providers) as [ProviderName, ProviderConfig][];
  }

  async #refreshOne(name: ProviderName, config: ProviderConfig): Promise<void> {
    const { models, privateHosts } = this.#parts;
    const isUsual = config.baseUrl === PROVIDER_BASE_URLS[name];
    if (isUsual || !(await isPrivateServer(config.baseUrl, privateHosts))) return;
    const answer = await requestList(name, config);
    this.#states.set(name, answer.state);
    if (answer.list) models.learn(name, answer.list);
    this.#warnOnce(name, answer);
  }

  /** Warns when a provider ceases to send its list. */
  #warnOnce(provider: ProviderName, { list, state }: ListAnswer): void {
    if (list) {
      this.#withoutList.delete(provider);
    } else if (!this.#withoutList.has(provider)) {
      this.#withoutList.add(provider);
      const reason = state === 'key_refused' ? 'it refuses its key' : 'it sends no list';
      this.#parts.log.warn(
        { provider, reason },
        `The models of ${provider} cannot be listed: those of the catalogue are offered`,
      );
    }
  }
}
