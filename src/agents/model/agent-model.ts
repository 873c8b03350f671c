import { hasQuota, type Plan } from '../../types/plans.js';
import { allows, type ModelEntry, type ModelSet } from '../../ai/models/model-set.js';
import { ModelRestrictedError } from '../../ai/routing/model-restricted-error.js';
import {
  requireOneModel,
  type Attempt,
  type Router,
  type WantedModel,
} from '../../ai/routing/route.js';
import type { AgentRow } from '../../platform/database/models.js';
import { BadRequestError, ServiceError } from '../../lib/errors.js';
import type { JsonObject } from '../../lib/json.js';
import { CUSTOM_MODEL, DEFAULT_MODEL } from './models.js';

/** The model and provider an agent was created with. */
export interface AgentModelChoice {
  readonly model: string;
  readonly aiProvider: string;
  /** The model in `config.model`, used only for `custom`. */
  readonly ownModel?: string | null | undefined;
}

/**
 * Returns the models that an agent uses on its owner's plan, best first: the default one has replacements.
 * @throws ModelRestrictedError for a model that the plan excludes, or an unpriced one on a plan with a quota;
 * BadRequestError for a name that does not denote exactly one model.
 */
export function requestedModelOf(
  models: ModelSet,
  agent: AgentModelChoice,
  plan: Plan,
): WantedModel {
  const offered = offeredModel(models, agent, plan);
  if (offered === undefined) throw new ModelRestrictedError(nameOf(agent), plan, models);
  return offered;
}

/** Returns undefined if the plan excludes the model: lists contain many such agents. */
function offeredModel(
  models: ModelSet,
  agent: AgentModelChoice,
  plan: Plan,
): WantedModel | undefined {
  const { aiProvider, model } = agent;
  const has = (family: string) => hasModel(plan, models.ofFamily(family));
  if (model === CUSTOM_MODEL) return ownModel(models, agent, plan);
  if (model === DEFAULT_MODEL) {
    return { aiProvider, families: models.agentFamilies.filter(has), alone: false };
  }
  return has(model) ? { aiProvider, families: [model], alone: false } : undefined;
}

function ownModel(
  models: ModelSet,
  { aiProvider, ownModel: name }: AgentModelChoice,
  plan: Plan,
): WantedModel | undefined {
  if (!name) throw new BadRequestError('config.model names no model');
  const known =
    models.find(`${aiProvider}/${name}`) ?? models.find(name) ?? models.ofFamily(name)[0];
  // A model that its provider lacks is never called, so its price does not matter.
  if (!known && models.lacks(aiProvider, name)) return { aiProvider, name };
  if (known ? !allows(plan, known) : hasQuota(plan)) return undefined;
  if (known) return { aiProvider, families: [known.family], alone: true };
  requireOneModel(aiProvider, name);
  return { aiProvider, name };
}

const nameOf = ({ model, ownModel }: AgentModelChoice): string =>
  model === CUSTOM_MODEL ? (ownModel ?? CUSTOM_MODEL) : model;

const hasModel = (plan: Plan, [entry]: readonly ModelEntry[]): boolean =>
  entry !== undefined && allows(plan, entry);

/** Returns the model in `config.model` for `custom`. @throws BadRequestError for `custom` without a name. */
export function requireOwnModel(model: string, { model: own }: JsonObject): string | undefined {
  if (model !== CUSTOM_MODEL) return undefined;
  if (typeof own !== 'string' || own === '') {
    throw new BadRequestError('config.model must name the model when model is custom');
  }
  return own;
}

export function choiceOf({ aiProvider, config, model }: ChosenModel): AgentModelChoice {
  const ownModel = typeof config.model === 'string' ? config.model : undefined;
  return { model, aiProvider, ownModel };
}

type ChosenModel = Pick<AgentRow, 'aiProvider' | 'config' | 'model'>;

/**
 * Returns the model shown to users: the first that the agent's calls are routed to, by its catalogue name if
 * any. An unavailable model is shown under its chosen name.
 */
export function shownModel(
  router: Router,
  agent: AgentModelChoice,
  plan: Plan | undefined,
): string {
  return (plan && firstAttempt(router, agent, plan))?.entry?.family ?? nameOf(agent);
}

/** Returns the first model that an agent's calls are routed to; undefined if none is offered or available. */
export function firstAttempt(
  router: Router,
  agent: AgentModelChoice,
  plan: Plan,
): Attempt | undefined {
  try {
    const offered = offeredModel(router.models.current, agent, plan);
    return offered && router.forAgent(offered, plan)[0];
  } catch (error) {
    if (error instanceof ServiceError) return undefined;
    throw error;
  }
}

/** Returns a cached `shownModel` for a list of one owner's agents, most of which share a model. */
export function shownModels(
  router: Router,
  plan: Plan | undefined,
): (agent: AgentModelChoice) => string {
  const known = new Map<string, string>();
  return (agent) => {
    const { aiProvider, model, ownModel } = agent;
    const key = JSON.stringify([aiProvider, model, model === CUSTOM_MODEL && ownModel]);
    const shown = known.get(key) ?? shownModel(router, agent, plan);
    known.set(key, shown);
    return shown;
  };
}
