import { PLANS, type Plan } from '../../types/plans.js';
import { CATALOGUE, type CatalogueModel } from './catalogue-data.js';
import type { ProviderName } from '../completion/provider-names.js';

/** A model at one provider. */
export interface ModelEntry extends CatalogueModel {
  /** `<provider>/<model>`. */
  readonly id: string;
  readonly provider: ProviderName;
  /** The provider's name for the model. */
  readonly model: string;
}

/** All models, those of cheaper plans first. */
export const MODELS: readonly ModelEntry[] = CATALOGUE.flatMap((model) =>
  // Object.entries loses the type of its keys, which are provider names.
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

export function modelsOfFamily(family: string): readonly ModelEntry[] {
  return BY_FAMILY.get(family) ?? [];
}

/** Reports whether a plan includes the model: a plan includes all models of lower plans. */
export function allows(plan: Plan, { plan: lowest }: Pick<CatalogueModel, 'plan'>): boolean {
  return PLANS.indexOf(lowest) <= PLANS.indexOf(plan);
}

export function allowedModels(plan: Plan): string[] {
  return MODELS.filter((entry) => allows(plan, entry)).map(({ id }) => id);
}
