import type { CatalogueModel } from '../src/ai/models/catalogue.js';

/** Days after which figures are stale: providers change rates and names several times a year. */
export const STALE_AFTER_DAYS = 90;

const DAY_MS = 24 * 60 * 60_000;

/** Returns the models whose figures are stale, with the days since they were checked. */
export function staleModels(
  now: number,
  models: readonly CatalogueModel[],
): { readonly model: CatalogueModel; readonly days: number }[] {
  return models
    .map((model) => ({ model, days: Math.floor((now - Date.parse(model.asOf)) / DAY_MS) }))
    .filter(({ days }) => days > STALE_AFTER_DAYS);
}
