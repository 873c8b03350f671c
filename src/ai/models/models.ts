import { isDeepStrictEqual } from 'node:util';
import { withUsual, type ProviderName, type Providers } from '../completion/provider-names.js';
import type { ListedModel } from '../providers/shared/model-list.js';
import type { Catalogue } from './catalogue.js';
import { ModelSet } from './model-set.js';

interface ModelsParts {
  readonly catalogue: Catalogue;
  readonly providers: Providers;
}

/** The models of the catalogue and of the providers' lists. Each change makes a new set. */
export class Models {
  readonly #parts: ModelsParts;
  readonly #lists = new Map<ProviderName, readonly ListedModel[]>();
  #current: ModelSet;
  /** Sets for callers with own keys, by the providers that these open. */
  readonly #opened = new Map<string, ModelSet>();

  constructor(parts: ModelsParts) {
    this.#parts = parts;
    this.#current = this.#newSet();
  }

  get current(): ModelSet {
    return this.#current;
  }

  /** Returns the models for a caller whose own keys give access to further providers, in a fixed order. */
  opening(further: readonly ProviderName[]): ModelSet {
    const key = further.join();
    const set = this.#opened.get(key) ?? this.#newSet(further);
    this.#opened.set(key, set);
    return set;
  }

  /** Replaces what a provider serves: exactly the models of its list. */
  learn(provider: ProviderName, list: readonly ListedModel[]): void {
    if (isDeepStrictEqual(this.#lists.get(provider), list)) return;
    this.#lists.set(provider, list);
    this.#current = this.#newSet();
    this.#opened.clear();
  }

  #newSet(further: readonly ProviderName[] = []): ModelSet {
    const { catalogue, providers } = this.#parts;
    return new ModelSet(catalogue, withUsual(providers, further), this.#lists);
  }
}
