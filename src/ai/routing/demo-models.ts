import type { ModelEntry, ModelSet } from '../models/model-set.js';

/** The demo chat has six models (spec 4.6). */
const LENGTH = 6;

/**
 * Returns the demo models, available ones first, then the discovered ones. Each is at its first available
 * provider, or else at openrouter, which serves all.
 */
export function demoModels(models: ModelSet): ModelEntry[] {
  const named = models.demoFamilies.flatMap((family) => {
    const entries = models.ofFamily(family);
    const usual = entries.find(({ provider }) => provider === 'openrouter') ?? entries[0];
    return entries.find(({ available }) => available) ?? usual ?? [];
  });
  return [
    ...named.filter(({ available }) => available),
    ...models.entries.filter(({ isDiscovered }) => isDiscovered),
    ...named.filter(({ available }) => !available),
  ].slice(0, LENGTH);
}

export function findDemoModel(models: ModelSet, id: string): ModelEntry | undefined {
  const entry = models.find(id);
  if (!entry) return undefined;
  return entry.isDiscovered || models.demoFamilies.includes(entry.family) ? entry : undefined;
}
