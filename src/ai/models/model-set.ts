import { PLANS, type Plan } from '../../types/plans.js';
import type { ProviderName, Providers } from '../completion/provider-names.js';
import type { Catalogue, CatalogueModel, TaskTier } from './catalogue.js';

/** A model at one provider. */
export interface ModelEntry extends CatalogueModel {
  /** `<provider>/<model>`. */
  readonly id: string;
  readonly provider: ProviderName;
  /** The provider's name for the model. */
  readonly model: string;
  /** True if calls may be sent: the provider is configured. */
  readonly available: boolean;
}

/** The models of one moment, with all lookups prepared, because every AI call uses them. */
export class ModelSet {
  /** All models, those of cheaper plans first. */
  readonly entries: readonly ModelEntry[];

  readonly #catalogue: Catalogue;
  readonly #byId: ReadonlyMap<string, ModelEntry>;
  readonly #byFamily: ReadonlyMap<string, readonly ModelEntry[]>;
  readonly #usual = new Map<ProviderName, readonly ModelEntry[]>();
  readonly #tiers = new Map<TaskTier, readonly ModelEntry[]>();

  constructor(catalogue: Catalogue, providers: Providers) {
    this.#catalogue = catalogue;
    this.entries = catalogue.models.flatMap((model) =>
      // Object.entries loses the type of its keys, which are provider names.
      (Object.entries(model.servedBy) as [ProviderName, string][]).map(([provider, name]) => ({
        ...model,
        id: `${provider}/${name}`,
        provider,
        model: name,
        available: providers[provider] !== undefined,
      })),
    );
    this.#byId = new Map(this.entries.map((entry) => [entry.id, entry]));
    this.#byFamily = new Map(
      catalogue.models.map(({ family }) => [
        family,
        this.entries.filter((entry) => entry.family === family),
      ]),
    );
    this.#prepareDefaults();
  }

  find(id: string): ModelEntry | undefined {
    return this.#byId.get(id);
  }

  ofFamily(family: string): readonly ModelEntry[] {
    return this.#byFamily.get(family) ?? [];
  }

  /** Returns the available models that a provider is asked for by default, best first. */
  usualOf(provider: ProviderName): readonly ModelEntry[] {
    return this.#usual.get(provider) ?? [];
  }

  /** Returns the available models of a tier, best first. */
  tier(task: TaskTier): readonly ModelEntry[] {
    return this.#tiers.get(task) ?? [];
  }

  /** Returns the families for an agent whose owner chose none, best first. */
  get agentFamilies(): readonly string[] {
    return this.#catalogue.defaults.agents;
  }

  get gatewayFamilies(): readonly string[] {
    return this.#catalogue.defaults.gateway;
  }

  get demoFamilies(): readonly string[] {
    return this.#catalogue.defaults.demo;
  }

  allowedIds(plan: Plan): string[] {
    return this.entries.filter((entry) => allows(plan, entry)).map(({ id }) => id);
  }

  #prepareDefaults(): void {
    const { defaults, tiers } = this.#catalogue;
    for (const provider of new Set(this.entries.map((entry) => entry.provider))) {
      const own = this.#availableAt(provider);
      const named = this.#named(defaults.providers[provider] ?? [], own);
      this.#usual.set(provider, named.length > 0 ? named : own);
    }
    const own = this.#availableAt('openrouter');
    // Object.entries loses the type of its keys, which are tiers.
    for (const [task, families] of Object.entries(tiers) as [TaskTier, readonly string[]][]) {
      this.#tiers.set(task, this.#named(families, own));
    }
  }

  #availableAt(provider: ProviderName): ModelEntry[] {
    return this.entries.filter((entry) => entry.available && entry.provider === provider);
  }

  #named(families: readonly string[], entries: readonly ModelEntry[]): ModelEntry[] {
    return families.flatMap((family) => entries.find((entry) => entry.family === family) ?? []);
  }
}

/** Reports whether a plan includes the model: a plan includes all models of lower plans. */
export function allows(plan: Plan, { plan: lowest }: Pick<CatalogueModel, 'plan'>): boolean {
  return PLANS.indexOf(lowest) <= PLANS.indexOf(plan);
}
