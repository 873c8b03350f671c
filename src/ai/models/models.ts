import type { Providers } from '../completion/provider-names.js';
import type { Catalogue } from './catalogue.js';
import { ModelSet } from './model-set.js';

/** The models of the catalogue, as the configured providers serve them. */
export class Models {
  readonly #current: ModelSet;

  constructor({
    catalogue,
    providers,
  }: {
    readonly catalogue: Catalogue;
    readonly providers: Providers;
  }) {
    this.#current = new ModelSet(catalogue, providers);
  }

  get current(): ModelSet {
    return this.#current;
  }
}
