import type { ModelEntry, ModelSet } from '../models/model-set.js';

/** Returns each demo model (spec 4.6) at its first available provider, or else at openrouter, which serves all. */
export function demoModels(models: ModelSet): ModelEntry[] {
  return models.demoFamilies.flatMap((family) => {
    const entries = models.ofFamily(family);
    const usual = entries.find(({ provider }) => provider === 'openrouter') ?? entries[0];
    return entries.find(({ available }) => available) ?? usual ?? [];
  });
}

export function findDemoModel(models: ModelSet, id: string): ModelEntry | undefined {
  const entry = models.find(id);
  return entry && models.demoFamilies.includes(entry.family) ? entry : undefined;
}
