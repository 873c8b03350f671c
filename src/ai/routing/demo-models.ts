import { MODELS, findModel, type ModelEntry } from './catalogue.js';

/** The six models of the demo chat (spec 4.6), chosen for their low cost. */
const FAMILIES: readonly string[] = [
  'gpt-6-luna',
  'gemini-2.5-flash',
  'gpt-oss-120b',
  'claude-haiku-5-5',
  'gemini-3.8-flash',
  'gpt-oss-20b',
];

/** Returns each demo model at its first available provider, or else at openrouter, which serves all. */
export function demoModels(available: (entry: ModelEntry) => boolean): ModelEntry[] {
  return FAMILIES.flatMap((family) => {
    const entries = MODELS.filter((entry) => entry.family === family);
    return (
      entries.find(available) ?? entries.find(({ provider }) => provider === 'openrouter') ?? []
    );
  });
}

export function findDemoModel(id: string): ModelEntry | undefined {
  const entry = findModel(id);
  return entry && FAMILIES.includes(entry.family) ? entry : undefined;
}
