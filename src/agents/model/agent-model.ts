import { hasQuota, type Plan } from '../../types/plans.js';
import { allows, findModel, modelsOfFamily, type ModelEntry } from '../../ai/routing/catalogue.js';
import { ModelRestrictedError } from '../../ai/routing/model-restricted-error.js';
import { requireOneModel, type Router, type WantedModel } from '../../ai/routing/route.js';
import type { AgentRow } from '../../platform/database/models.js';
import { BadRequestError, ServiceError } from '../../lib/errors.js';
import type { JsonObject } from '../../lib/json.js';
import { CUSTOM_MODEL, DEFAULT_MODEL } from './models.js';

/** What an agent was made for. */
export interface AgentModelChoice {
  /** One of those that provisioning offers. */
  readonly model: string;
  readonly aiProvider: string;
  /** What `config.model` names, which counts for `custom` alone. */
  readonly ownModel?: string | null | undefined;
}

/** What the default model is on plans that do not have it, the best first. */
const DEFAULT_STAND_INS: readonly string[] = [
  'claude-sonnet-5-5',
  'gpt-6.1-sol',
  'claude-haiku-5-5',
  'gemini-3.8-flash',
  'gemini-2.5-flash',
  'gpt-6-luna',
  'gpt-oss-120b',
];

/**
 * What an agent asks for on its owner's plan. The default model is on smaller plans the best that they
 * have.
 *
 * @throws ModelRestrictedError for a model that the plan does not have, or whose price is not known
 *   where tokens are counted; BadRequestError for a name that means more than a model.
 */
export function wantedModel(agent: AgentModelChoice, plan: Plan): WantedModel {
  const offered = offeredModel(agent, plan);
  if (offered === undefined) throw new ModelRestrictedError(nameOf(agent), plan);
  return offered;
}

/** The same, undefined for a model that is not for the plan: lists show many such agents. */
function offeredModel(agent: AgentModelChoice, plan: Plan): WantedModel | undefined {
  const { aiProvider, model } = agent;
  if (model === CUSTOM_MODEL) return ownModel(agent, plan);
  if (hasModel(plan, modelsOfFamily(model))) return { aiProvider, families: [model], alone: false };
  if (model !== DEFAULT_MODEL) return undefined;
  const families = DEFAULT_STAND_INS.filter((family) => hasModel(plan, modelsOfFamily(family)));
  return { aiProvider, families, alone: false };
}

function ownModel(
  { aiProvider, ownModel: name }: AgentModelChoice,
  plan: Plan,
): WantedModel | undefined {
  if (!name) throw new BadRequestError('config.model names no model');
  const known = findModel(`${aiProvider}/${name}`) ?? findModel(name) ?? modelsOfFamily(name)[0];
  if (known ? !allows(plan, known) : hasQuota(plan)) return undefined;
  if (known) return { aiProvider, families: [known.family], alone: true };
  requireOneModel(aiProvider, name);
  return { aiProvider, name };
}

/** As its owner knows it. */
const nameOf = ({ model, ownModel }: AgentModelChoice): string =>
  model === CUSTOM_MODEL ? (ownModel ?? CUSTOM_MODEL) : model;

const hasModel = (plan: Plan, [entry]: readonly ModelEntry[]): boolean =>
  entry !== undefined && allows(plan, entry);

/**
 * What `config.model` names of an agent for such a model; nothing but for `custom`.
 *
 * @throws BadRequestError for `custom` without a name.
 */
export function requireOwnModel(model: string, { model: own }: JsonObject): string | undefined {
  if (model !== CUSTOM_MODEL) return undefined;
  if (typeof own !== 'string' || own === '') {
    throw new BadRequestError('config.model must name the model when model is custom');
  }
  return own;
}

/** What an agent that is there was made for. */
export function choiceOf({ aiProvider, config, model }: ChosenModel): AgentModelChoice {
  const ownModel = typeof config.model === 'string' ? config.model : undefined;
  return { model, aiProvider, ownModel };
}

type ChosenModel = Pick<AgentRow, 'aiProvider' | 'config' | 'model'>;

/**
 * The model that is really asked first for an agent, as people are shown it: its name in the catalogue
 * or, of one that is not there, its own. What cannot be asked at all is shown as it was named.
 *
 * @param plan the owner's; undefined without one.
 */
export function shownModel(
  router: Router,
  agent: AgentModelChoice,
  plan: Plan | undefined,
): string {
  const named = nameOf(agent);
  if (plan === undefined) return named;
  try {
    const offered = offeredModel(agent, plan);
    const [first] = offered ? router.forAgent(offered, plan) : [];
    return first?.entry?.family ?? named;
  } catch (error) {
    if (error instanceof ServiceError) return named;
    throw error;
  }
}

/** The same for a list of one owner's agents, most of which were made for the same. */
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
