import { PLANS, type Plan } from '../../types/plans.js';
import { isProviderName, type ProviderName, type Providers } from '../completion/provider-names.js';
import type { ListedModel } from '../providers/shared/model-list.js';
import type { Catalogue, CatalogueModel, TaskTier } from './catalogue.js';

/** Sizes in tokens. */
export type LocalSizes = Pick<CatalogueModel, 'contextWindow' | 'maxOutput'>;

/** A model at one provider. */
export interface ModelEntry extends CatalogueModel {
  /** `<provider>/<model>`. */
  readonly id: string;
  readonly provider: ProviderName;
  /** The provider's name for the model. */
  readonly model: string;
  /** True if calls may be sent: the provider is configured, and its list, if known, has the model. */
  readonly available: boolean;
  /** True if the catalogue lacks the model, and its provider's list has it. */
  readonly isDiscovered: boolean;
  /** False for a model that its provider lists as unable to use tools. */
  readonly takesTools?: boolean | undefined;
  /** The sizes of a model on this machine or a private network, if they are known. */
  readonly localSizes?: LocalSizes | undefined;
}

/** Lists of models that providers have sent. */
export type ProviderLists = ReadonlyMap<ProviderName, readonly ListedModel[]>;

/** Tokens of a discovered model whose list has no context window. */
const UNKNOWN_CONTEXT = 8_192;

/** The suffix that servers such as Ollama add to a name without a version. */
const LATEST = ':latest';

/** A snapshot of the models, with all lookups precomputed because every AI call uses them. */
export class ModelSet {
  /** All models: those of the catalogue, cheaper plans first, then the discovered ones. */
  readonly entries: readonly ModelEntry[];

  /** False if no call can be answered. */
  readonly hasAvailable: boolean;
  /** True if each configured provider has an available model. */
  readonly everyProviderServes: boolean;

  readonly #catalogue: Catalogue;
  readonly #lists: ProviderLists;
  readonly #byId: ReadonlyMap<string, ModelEntry>;
  readonly #byFamily: ReadonlyMap<string, readonly ModelEntry[]>;
  readonly #usual = new Map<ProviderName, readonly ModelEntry[]>();
  readonly #tiers = new Map<TaskTier, readonly ModelEntry[]>();

  constructor(catalogue: Catalogue, providers: Providers, lists: ProviderLists = new Map()) {
    this.#catalogue = catalogue;
    this.#lists = new Map(lists);
    const known = catalogue.models.flatMap((model) =>
      // Object.entries loses the type of its keys, which are provider names.
      (Object.entries(model.servedBy) as [ProviderName, string][]).map(([provider, name]) => ({
        ...model,
        id: `${provider}/${name}`,
        provider,
        model: name,
        available: providers[provider] !== undefined && !this.lacks(provider, name),
        isDiscovered: false,
        localSizes: lists.has(provider) ? model : undefined,
      })),
    );
    this.entries = [...known, ...discovered(known, lists)];
    const serving = new Set(this.entries.flatMap((each) => (each.available ? each.provider : [])));
    this.everyProviderServes = Object.keys(providers).every(
      (name) => isProviderName(name) && serving.has(name),
    );
    this.hasAvailable = serving.size > 0;
    this.#byId = new Map([
      ...this.entries.map((entry) => [entry.id.replace(LATEST, ''), entry] as const),
      ...this.entries.map((entry) => [entry.id, entry] as const),
    ]);
    const byFamily = new Map<string, ModelEntry[]>();
    for (const entry of this.entries) {
      byFamily.set(entry.family, [...(byFamily.get(entry.family) ?? []), entry]);
    }
    this.#byFamily = byFamily;
    this.#prepareDefaults();
  }

  find(id: string): ModelEntry | undefined {
    return this.#byId.get(id);
  }

  ofFamily(family: string): readonly ModelEntry[] {
    return this.#byFamily.get(family) ?? [];
  }

  /** Reports whether a provider has sent a list without this name. */
  lacks(provider: string, name: string): boolean {
    if (!isProviderName(provider)) return false;
    const list = this.#lists.get(provider);
    return list !== undefined && !list.some((listed) => isSameName(listed.name, name));
  }

  /** Returns the available models that are requested of a provider by default, best first. */
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
      const others = own.filter((entry) => entry.isDiscovered || named.length === 0);
      this.#usual.set(provider, [...named, ...others]);
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

/** Returns the models of the lists that the catalogue lacks: without cost, and in every plan. */
function discovered(known: readonly ModelEntry[], lists: ProviderLists): ModelEntry[] {
  const asOf = new Date().toISOString().slice(0, 'yyyy-mm-dd'.length);
  return [...lists].flatMap(([provider, list]) => {
    const own = known.filter((entry) => entry.provider === provider);
    return chatFirst(list)
      .filter(({ name }) => !own.some(({ model }) => isSameName(name, model)))
      .map(({ name, takesTools, ...sizes }) => ({
        takesTools,
        ...sizesOf(sizes),
        family: `${provider}/${name}`,
        name,
        description: `Found at ${provider}`,
        tags: ['general'],
        plan: PLANS[0],
        inputCost: 0,
        outputCost: 0,
        source: `the list of ${provider}`,
        asOf,
        servedBy: { [provider]: name },
        id: `${provider}/${name}`,
        provider,
        model: name,
        available: true,
        isDiscovered: true,
      }));
  });
}

/** Returns the sizes of a listed model. Without a limit on the answer, half of a known context is for it. */
function sizesOf({ contextWindow, maxOutput }: Omit<ListedModel, 'name'>) {
  if (contextWindow === undefined) {
    const most = Math.min(maxOutput ?? UNKNOWN_CONTEXT, UNKNOWN_CONTEXT);
    return { contextWindow: UNKNOWN_CONTEXT, maxOutput: most };
  }
  const half = Math.ceil(contextWindow / 2);
  const sizes = { contextWindow, maxOutput: Math.min(maxOutput ?? half, contextWindow) };
  return { ...sizes, localSizes: sizes };
}

const isSameName = (listed: string, name: string): boolean =>
  listed === name || listed === `${name}${LATEST}`;

/** Orders a list so that no default is a model for embeddings, which cannot chat. */
function chatFirst(list: readonly ListedModel[]): ListedModel[] {
  const embeds = ({ name }: ListedModel) => /embed/i.test(name);
  return [...list.filter((each) => !embeds(each)), ...list.filter(embeds)];
}

/** Reports whether a plan includes the model: a plan includes all models of lower plans. */
export function allows(plan: Plan, { plan: lowest }: Pick<CatalogueModel, 'plan'>): boolean {
  return PLANS.indexOf(lowest) <= PLANS.indexOf(plan);
}
