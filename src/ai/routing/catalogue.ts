import { PLANS, type Plan } from '../../types/plans.js';
import { CATALOGUE, type CatalogueModel } from './catalogue-data.js';
import type { ProviderName } from '../completion/provider-names.js';

/** One model at one provider: what a caller names, and an attempt asks for. */
export interface ModelEntry extends CatalogueModel {
  /** `<provider>/<model>`. */
  readonly id: string;
  readonly provider: ProviderName;
  /** What the provider calls it. */
  readonly model: string;
}

/** All models, the cheaper plans' first. */
export const MODELS: readonly ModelEntry[] = CATALOGUE.flatMap((model) =>
  // Object.entries forgets that the keys are providers' names.
  (Object.entries(model.servedBy) as [ProviderName, string][]).map(([provider, name]) => ({
    ...model,
    id: `${provider}/${name}`,
    provider,
    model: name,
  })),
);

const BY_ID: ReadonlyMap<string, ModelEntry> = new Map(MODELS.map((entry) => [entry.id, entry]));

export function findModel(id: string): ModelEntry | undefined {
  return BY_ID.get(id);
}

const BY_FAMILY: ReadonlyMap<string, readonly ModelEntry[]> = new Map(
  CATALOGUE.map(({ family }) => [family, MODELS.filter((entry) => entry.family === family)]),
);

/** The same model at every provider that serves it. */
export function modelsOfFamily(family: string): readonly ModelEntry[] {
  return BY_FAMILY.get(family) ?? [];
}

/** Whether a plan's subscribers may ask for the model: a plan has all that the plans below it have. */
export function allows(plan: Plan, { plan: lowest }: Pick<CatalogueModel, 'plan'>): boolean {
  return PLANS.indexOf(lowest) <= PLANS.indexOf(plan);
}

/** The ids that a plan's subscribers may ask for. */
export function allowedModels(plan: Plan): string[] {
  return MODELS.filter((entry) => allows(plan, entry)).map(({ id }) => id);
}
