import type { Plan } from '../accounts/plans.js';
import { NotFoundError, UnavailableError } from '../errors.js';
import { allows, findModel, modelsOfFamily, type ModelEntry } from './catalogue.js';
import type { Target } from './circuit-breaker.js';
import { ModelRestrictedError } from './model-restricted-error.js';
import type { ProviderConfig, ProviderName } from './provider-names.js';

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
    const tier = isTier(task) && this.#providers.openrouter ? TIERS[task].map(entryOf) : [];
    const others = CHAIN.filter((provider) => provider !== this.#preferred);
    const general = [
      ...primariesOf(this.#preferred),
      ...others.flatMap((provider) => primariesOf(provider).slice(0, 1)),
    ];
    return this.#served(tier.some((entry) => allows(plan, entry)) ? tier : general, plan);
  }

  /**
   * For an agent's own model: asked of the provider it was made for if that is configured, else of
   * whoever serves it. A model that is not in the catalogue has nobody to stand in for it.
   *
   * @throws UnavailableError when no provider is configured.
   */
  forAgent(
    agent: {
      readonly model: string;
      readonly aiProvider: string;
      /** What it was configured with in place of it. */
      readonly ownModel: string | undefined;
    },
    plan: Plan,
  ): Route {
    requireProvider(this.#providers, this.#preferred);
    const { ownModel: own } = agent;
    const family = modelsOfFamily(own ?? agent.model);
    const first = [agent.aiProvider, this.#preferred];
    const rank = ({ provider }: ModelEntry) => (first.indexOf(provider) + 3) % 3;
    const serving = family
      .filter(({ provider }) => this.#providers[provider])
      .toSorted((a, b) => rank(a) - rank(b));
    const [entry] = serving;
    if (entry && own === undefined) {
      const standIns = primariesOf(entry.provider).filter((each) => allows(plan, each));
      return unique([...serving, ...standIns].map(toAttempt));
    }
    const provider = this.#anyOf(agent.aiProvider);
    const model = own ?? agent.model;
    return [{ provider, model, entry: findModel(`${provider}/${model}`) }];
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

  #anyOf(wanted: string): ProviderName {
    const found = [wanted, this.#preferred, ...Object.keys(PRIMARIES)].find(
      (name): name is ProviderName => Object.hasOwn(this.#providers, name),
    );
    if (found === undefined) throw new TypeError('one was required');
    return found;
  }
}

function entryOf(id: string): ModelEntry {
  const entry = findModel(id);
  if (!entry) throw new TypeError(`${id} is not in the catalogue`);
  return entry;
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
