import { hasQuota, type Plan } from '../../types/plans.js';
import { BadRequestError, NotFoundError, UnavailableError } from '../../lib/errors.js';
import { allows, findModel, MODELS, modelsOfFamily, type ModelEntry } from './catalogue.js';
import type { Target } from './circuit-breaker.js';
import { ModelRestrictedError } from './model-restricted-error.js';
import type { ProviderConfig, ProviderName } from '../completion/provider-names.js';

/** Who is asked, in this order; the first that answers serves. */
export type Route = readonly Attempt[];

/** One of those who may be asked. */
export interface Attempt extends Target {
  /** Undefined for a model that is not in the catalogue, such as one of a local server. */
  readonly entry: ModelEntry | undefined;
}

/** The providers that a key or an address was given for. */
export type Providers = Partial<Readonly<Record<ProviderName, ProviderConfig>>>;

/** Each provider's primary model and its fallback (spec 4.8), by the ids of the catalogue. */
const PRIMARIES: Readonly<Record<ProviderName, readonly [string, string]>> = {
  openrouter: ['openrouter/openai/gpt-6-luna', 'openrouter/google/gemini-2.5-flash'],
  gemini: ['gemini/gemini-2.5-flash', 'gemini/gemini-3.8-flash'],
  groq: ['groq/openai/gpt-oss-120b', 'groq/openai/gpt-oss-20b'],
  anthropic: ['anthropic/claude-haiku-5-5', 'anthropic/claude-sonnet-5-5'],
  openai: ['openai/gpt-6-luna', 'openai/gpt-6.1-sol'],
  minimax: ['minimax/MiniMax-M3', 'minimax/MiniMax-M2.5'],
};

/** Who stands in for whom; minimax never does (spec 4.8). */
const CHAIN: readonly ProviderName[] = ['openrouter', 'gemini', 'groq', 'anthropic', 'openai'];

export const TASK_TIERS = ['reasoning', 'coding', 'fast', 'creative'] as const;

export type TaskTier = (typeof TASK_TIERS)[number];

/**
 * OpenRouter's names, with those of its variants that only choose among who serves the model: others
 * search the web, or are a choice of models that somebody has put together.
 */
const OPENROUTER_NAME =
  /^(?!openrouter\/)[\w.-]+\/[\w.-]+(:(free|thinking|extended|nitro|floor|exacto))?$/;

/** @throws BadRequestError for a name that means more at a provider than one model. */
export function requireOneModel(provider: string, name: string): void {
  if (provider === 'openrouter' && !OPENROUTER_NAME.test(name)) {
    throw new BadRequestError(`${name} does not name one model of OpenRouter`);
  }
}

/** What an agent asks for: one model or the first that is served, or one that its provider alone knows. */
export type WantedModel =
  | {
      readonly aiProvider: string;
      /** Names in the catalogue, the best first. */
      readonly families: readonly string[];
      /** Whether no other model may stand in for it. */
      readonly alone: boolean;
    }
  | { readonly aiProvider: string; readonly name: string };

/** A primary and two fallbacks, all through openrouter (spec 4.8). */
const TIERS: Readonly<Record<TaskTier, readonly [string, string, string]>> = {
  reasoning: [
    'openrouter/anthropic/claude-opus-5.5',
    'openrouter/openai/gpt-6.1-sol',
    'openrouter/openai/gpt-oss-120b',
  ],
  coding: [
    'openrouter/anthropic/claude-sonnet-5.5',
    'openrouter/openai/gpt-6.1-sol',
    'openrouter/openai/gpt-oss-120b',
  ],
  fast: [
    'openrouter/openai/gpt-6-luna',
    'openrouter/google/gemini-2.5-flash',
    'openrouter/openai/gpt-oss-120b',
  ],
  creative: [
    'openrouter/anthropic/claude-sonnet-5.5',
    'openrouter/google/gemini-3.8-flash',
    'openrouter/openai/gpt-6-luna',
  ],
};

/** Attempts of one call: what takes longer is no answer any more. */
const MAX_ATTEMPTS = 6;

const isTier = (task: string): task is TaskTier => TASK_TIERS.some((tier) => tier === task);

/** @throws UnavailableError that says what to set, when no provider is configured. */
export function requireProvider(providers: Providers, preferred: ProviderName): void {
  if (Object.keys(providers).length > 0) return;
  const prefix = preferred.toUpperCase();
  throw new UnavailableError(
    `No AI provider is configured: set ${prefix}_API_KEY, or ${prefix}_BASE_URL for any address ` +
      'that speaks its format, and restart',
  );
}

/** Decides who is asked. Only models that the plan allows, at providers that are configured. */
export class Router {
  readonly #providers: Providers;
  readonly #preferred: ProviderName;

  /** @param preferred `AI_PROVIDER`: asked first where nothing else decides. */
  constructor(providers: Providers, preferred: ProviderName) {
    this.#providers = providers;
    this.#preferred = preferred;
  }

  /**
   * For a model where one is asked for, else for a kind of task.
   *
   * @throws what `forModel` and `forTask` do.
   */
  for(
    { model, task = 'general' }: { model?: string | undefined; task?: string },
    plan: Plan,
  ): Route {
    return model === undefined ? this.forTask(task, plan) : this.forModel(model, plan);
  }

  /**
   * For a model that was asked for by its id: it, the same model at another provider, and then its
   * provider's own fallback.
   *
   * @throws ModelRestrictedError; NotFoundError when there is no such model, or nobody serves it here; UnavailableError
   *   when no provider is configured.
   */
  forModel(id: string, plan: Plan): Route {
    const asked = findModel(id);
    if (!asked) throw new NotFoundError('Model not found');
    if (!allows(plan, asked)) throw new ModelRestrictedError(id, plan);
    const elsewhere = modelsOfFamily(asked.family).filter(({ provider }) =>
      CHAIN.includes(provider),
    );
    return this.#served([asked, ...elsewhere, ...primariesOf(asked.provider)], plan);
  }

  /**
   * For a kind of task. What is no tier is answered by the preferred provider, and then by the
   * others in turn; so is a tier where openrouter is not configured.
   *
   * @throws NotFoundError when no configured provider has a model for the plan; UnavailableError
   *   when none is configured.
   */
  forTask(task: string, plan: Plan): Route {
    const tier = isTier(task) && this.#providers.openrouter ? tierOf(task, plan) : [];
    const others = CHAIN.filter((provider) => provider !== this.#preferred);
    const general = [
      ...primariesOf(this.#preferred),
      ...others.flatMap((provider) => primariesOf(provider).slice(0, 1)),
    ];
    return this.#served(tier.length > 0 ? tier : general, plan);
  }

  /**
   * For an agent's model: asked of the provider it was made for if that is configured, else of
   * whoever serves it. On plans with a quota their other models stand in after its provider's own. A
   * model that is not in the catalogue has nobody to stand in for it.
   *
   * @throws NotFoundError when nobody serves it here; UnavailableError when no provider is configured;
   *   what `requireOneModel` throws.
   */
  forAgent(wanted: WantedModel, plan: Plan): Route {
    requireProvider(this.#providers, this.#preferred);
    if ('name' in wanted) return [this.#unknown(wanted.aiProvider, wanted.name)];
    const { aiProvider, alone, families } = wanted;
    const first = [aiProvider, this.#preferred];
    const rank = ({ provider }: ModelEntry) => (first.indexOf(provider) + 3) % 3;
    const served = families
      .map((family) => modelsOfFamily(family).filter((entry) => this.available(entry)))
      .map((serving) => serving.toSorted((a, b) => rank(a) - rank(b)));
    const [serving, ...others] = served.filter((entries) => entries.length > 0);
    const [entry] = serving ?? [];
    if (serving === undefined || entry === undefined) {
      const [family = ''] = families;
      if (hasQuota(plan)) throw new NotFoundError('No model is available for this');
      return [this.#unknown(aiProvider, family)];
    }
    if (alone) return unique(serving.map(toAttempt));
    const standIns = [...primariesOf(entry.provider), ...others.flat()];
    const allowed = standIns.filter((each) => allows(plan, each));
    return unique([...serving, ...allowed].map(toAttempt));
  }

  available({ provider }: ModelEntry): boolean {
    return this.#providers[provider] !== undefined;
  }

  #served(entries: readonly ModelEntry[], plan: Plan): Route {
    requireProvider(this.#providers, this.#preferred);
    const serving = entries.filter((entry) => this.available(entry) && allows(plan, entry));
    if (serving.length === 0) throw new NotFoundError('No model is available for this');
    return unique(serving.map(toAttempt));
  }

  /** At the provider that is wanted, or else at any: one is configured. */
  #unknown(wanted: string, model: string): Attempt {
    const provider = [wanted, this.#preferred, ...Object.keys(PRIMARIES)].find(
      (name): name is ProviderName => Object.hasOwn(this.#providers, name),
    );
    if (provider === undefined) throw new TypeError('one was required');
    requireOneModel(provider, model);
    return { provider, model, entry: findModel(`${provider}/${model}`) };
  }
}

function entryOf(id: string): ModelEntry {
  const entry = findModel(id);
  if (!entry) throw new TypeError(`${id} is not in the catalogue`);
  return entry;
}

/**
 * The models of a tier that the plan has; where those are fewer than three, its other models at the
 * same provider follow, those for this kind of task first.
 */
function tierOf(task: TaskTier, plan: Plan): ModelEntry[] {
  const own = TIERS[task].map(entryOf).filter((entry) => allows(plan, entry));
  const others = MODELS.filter(
    (entry) => entry.provider === 'openrouter' && allows(plan, entry) && !own.includes(entry),
  ).toReversed();
  const fit = (entry: ModelEntry) => entry.tags.includes(task);
  const inTurn = [...own, ...others.filter(fit), ...others.filter((entry) => !fit(entry))];
  return inTurn.slice(0, TIERS[task].length);
}

const primariesOf = (provider: ProviderName): ModelEntry[] => PRIMARIES[provider].map(entryOf);

const toAttempt = (entry: ModelEntry): Attempt => ({
  provider: entry.provider,
  model: entry.model,
  entry,
});

function unique(route: Route): Route {
  const ids = new Map(route.map((attempt) => [`${attempt.provider}/${attempt.model}`, attempt]));
  return [...ids.values()].slice(0, MAX_ATTEMPTS);
}
