import type { Plan } from '../../types/plans.js';
import { BadRequestError, NotFoundError, UnavailableError } from '../../lib/errors.js';
import type { Target } from './circuit-breaker.js';
import { ModelRestrictedError } from './model-restricted-error.js';
import {
  PROVIDER_NAMES,
  withUsual,
  type ProviderName,
  type Providers,
} from '../completion/provider-names.js';
import { TASK_TIERS, type TaskTier } from '../models/catalogue.js';
import { allows, type ModelEntry, type ModelSet } from '../models/model-set.js';
import type { Models } from '../models/models.js';

/** Attempts in order; the first to succeed serves the call. */
export type Route = readonly Attempt[];

export interface Attempt extends Target {
  /** Undefined for a model outside the catalogue, such as a local server's. */
  readonly entry: ModelEntry | undefined;
}

/** Order in which providers replace each other; minimax never does (spec 4.8). */
const CHAIN: readonly ProviderName[] = ['openrouter', 'gemini', 'groq', 'anthropic', 'openai'];

/** OpenRouter's names, with the variants that only select a host. Others search the web or select models. */
const OPENROUTER_NAME =
  /^(?!openrouter\/)[\w.-]+\/[\w.-]+(:(free|thinking|extended|nitro|floor|exacto))?$/;

/** Refuses a name for more than one model at the provider. @throws BadRequestError */
export function requireOneModel(provider: string, name: string): void {
  if (provider === 'openrouter' && !OPENROUTER_NAME.test(name)) {
    throw new BadRequestError(`${name} does not name a single OpenRouter model`);
  }
}

/** The first served of several names, or a name known only to its provider. */
export type WantedModel =
  | {
      readonly aiProvider: string;
      readonly families: readonly string[];
      /** No other model may replace it. */
      readonly alone: boolean;
    }
  | { readonly aiProvider: string; readonly name: string };

/** A primary and two fallbacks for each tier (spec 4.8). */
const TIER_LENGTH = 3;

/** The primary of a provider and its fallback. */
const USUAL_LENGTH = 2;

/** Maximum number of attempts of one call; more would take too long to be useful. */
const MAX_ATTEMPTS = 6;

const isTier = (task: string): task is TaskTier => TASK_TIERS.some((tier) => tier === task);

/** The models of this moment, and those for callers with own keys. */
type ModelSource = Pick<Models, 'current' | 'opening'>;

/** Selects providers and models for a call: only available models in the plan. */
export class Router {
  readonly models: ModelSource;
  readonly #providers: Providers;
  readonly #preferred: ProviderName;

  /** `preferred` is `AI_PROVIDER`, tried first if no other rule decides. */
  constructor(models: ModelSource, providers: Providers, preferred: ProviderName) {
    this.models = models;
    this.#providers = providers;
    this.#preferred = preferred;
  }

  /** Returns the router for a caller whose own keys may open further providers. */
  opening(names: readonly ProviderName[]): Router {
    const further = PROVIDER_NAMES.filter(
      (name) => names.includes(name) && this.#providers[name] === undefined,
    );
    if (further.length === 0) return this;
    const current = this.models.opening(further);
    const models = { current, opening: () => current };
    return new Router(models, withUsual(this.#providers, further), this.#preferred);
  }

  /** Returns the route for a model, if given, or else for a kind of task. @throws the errors of these. */
  for(
    { model, task = 'general' }: { model?: string | undefined; task?: string },
    plan: Plan,
  ): Route {
    return model === undefined ? this.forTask(task, plan) : this.forModel(model, plan);
  }

  /**
   * Returns the route for a model id: that model, the same at another provider, then its provider's fallback.
   * @throws ModelRestrictedError; NotFoundError for an unknown or unserved model; UnavailableError
   */
  forModel(id: string, plan: Plan): Route {
    const set = this.models.current;
    const model = set.find(id);
    if (!model) throw new NotFoundError('Model not found');
    if (!allows(plan, model)) throw new ModelRestrictedError(id, plan, set);
    const elsewhere = set.ofFamily(model.family).filter(({ provider }) => CHAIN.includes(provider));
    const serving = [model, ...elsewhere].filter(({ available }) => available);
    // No other model replaces one that no provider serves: the caller named the model.
    const others = serving.length > 0 ? usualOf(set, model.provider, plan) : [];
    return this.#routeTo([...serving, ...others]);
  }

  /**
   * Returns the route for a kind of task. A task that is no tier, or a tier without openrouter, goes to the
   * preferred provider, then to the others in turn. @throws NotFoundError without a model; UnavailableError
   */
  forTask(task: string, plan: Plan): Route {
    const set = this.models.current;
    const tier = isTier(task) ? tierOf(set, task, plan) : [];
    const others = CHAIN.filter((provider) => provider !== this.#preferred);
    const general = [
      ...usualOf(set, this.#preferred, plan),
      ...others.flatMap((provider) => usualOf(set, provider, plan).slice(0, 1)),
    ];
    return this.#routeTo(tier.length > 0 ? tier : general);
  }

  /**
   * Returns the route for an agent's model: at its own provider if configured, otherwise at any that serves
   * it. On plans with a quota, their other models follow. A model outside the catalogue has no fallback. A
   * model that no provider serves is replaced by the default one.
   * @throws NotFoundError; UnavailableError without a model; the errors of `requireOneModel`.
   */
  forAgent(wanted: WantedModel, plan: Plan): Route {
    const set = this.models.current;
    if ('name' in wanted) {
      const unlisted = this.#unlisted(set, wanted);
      return unlisted ? [unlisted] : this.forTask('general', plan);
    }
    const { aiProvider, alone, families } = wanted;
    const first = [aiProvider, this.#preferred];
    const rank = ({ provider }: ModelEntry) => (first.indexOf(provider) + 3) % 3;
    const served = families
      .map((family) => set.ofFamily(family).filter(({ available }) => available))
      .map((serving) => serving.toSorted((a, b) => rank(a) - rank(b)));
    const [serving, ...others] = served.filter((entries) => entries.length > 0);
    const [entry] = serving ?? [];
    if (serving === undefined || entry === undefined) return this.forTask('general', plan);
    if (alone) return unique(serving.map(toAttempt));
    const standIns = others.flat().filter((each) => allows(plan, each));
    return unique([...serving, ...usualOf(set, entry.provider, plan), ...standIns].map(toAttempt));
  }

  /** Requires any available model. @throws UnavailableError with `setup`, which names the setting to set */
  requireModel(): void {
    const setup = this.missingModel;
    if (setup) throw new UnavailableError('No AI model is available', undefined, { setup });
  }

  /** Returns a sentence that names the setting to set if no model is available. */
  get missingModel(): string | undefined {
    if (this.models.current.hasAvailable) return undefined;
    const configured = PROVIDER_NAMES.find((name) => this.#providers[name] !== undefined);
    const prefix = (configured ?? this.#preferred).toUpperCase();
    return configured
      ? `Load a model on the server at ${prefix}_BASE_URL, or list its models in AI_MODELS_FILE`
      : `Set ${prefix}_API_KEY, or ${prefix}_BASE_URL for any address with its API format, and restart`;
  }

  #routeTo(entries: readonly ModelEntry[]): Route {
    this.requireModel();
    if (entries.length === 0) throw new NotFoundError('No model is available for this task');
    return unique(entries.map(toAttempt));
  }

  /**
   * Returns an attempt at the wanted provider, or else at any configured provider; undefined if that provider's
   * list lacks the model.
   */
  #unlisted(
    set: ModelSet,
    { aiProvider, name: model }: Extract<WantedModel, { name: string }>,
  ): Attempt | undefined {
    const provider = [aiProvider, this.#preferred, ...PROVIDER_NAMES].find(
      (name): name is ProviderName => Object.hasOwn(this.#providers, name),
    );
    if (provider === undefined || set.lacks(provider, model)) return undefined;
    requireOneModel(provider, model);
    return { provider, model, entry: set.find(`${provider}/${model}`) };
  }
}

/**
 * Returns the tier's models that the plan allows. If fewer than three, the plan's other models at the same
 * provider follow, those for this kind of task first.
 */
function tierOf(set: ModelSet, task: TaskTier, plan: Plan): ModelEntry[] {
  const own = set.tier(task).filter((entry) => allows(plan, entry));
  const others = set.entries
    .filter(
      (entry) =>
        entry.provider === 'openrouter' &&
        entry.available &&
        allows(plan, entry) &&
        !own.includes(entry),
    )
    .toReversed();
  const fit = (entry: ModelEntry) => entry.tags.includes(task);
  const inTurn = [...own, ...others.filter(fit), ...others.filter((entry) => !fit(entry))];
  return inTurn.slice(0, TIER_LENGTH);
}

const usualOf = (set: ModelSet, provider: ProviderName, plan: Plan): ModelEntry[] =>
  set
    .usualOf(provider)
    .filter((entry) => allows(plan, entry))
    .slice(0, USUAL_LENGTH);

const toAttempt = (entry: ModelEntry): Attempt => ({
  provider: entry.provider,
  model: entry.model,
  entry,
});

function unique(route: Route): Route {
  const ids = new Map(route.map((attempt) => [`${attempt.provider}/${attempt.model}`, attempt]));
  return [...ids.values()].slice(0, MAX_ATTEMPTS);
}
