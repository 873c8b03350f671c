import * as z from 'zod';
import type { ModelEntry } from '../../src/ai/models/model-set.js';
import { PROVIDER_NAMES } from '../../src/ai/completion/provider-names.js';

/** A model in a list (spec 2). */
export const modelItem = z
  .strictObject({
    id: z.string().meta({ examples: ['claude-opus-4-6'] }),
    name: z.string(),
    provider: z.enum(PROVIDER_NAMES),
    description: z.string(),
    tags: z.array(z.string()),
    inputCost: z.number().describe('US dollars per million tokens'),
    outputCost: z.number().describe('US dollars per million tokens'),
    contextWindow: z.int().describe('Tokens'),
    available: z.boolean().describe('True if a configured provider serves the model'),
  })
  .meta({ id: 'Model' });

export function presentModelItem(entry: ModelEntry): z.infer<typeof modelItem> {
  const { available, id, name, provider, description, tags } = entry;
  const { inputCost, outputCost, contextWindow } = entry;
  return {
    id,
    name,
    provider,
    description,
    tags: [...tags],
    inputCost,
    outputCost,
    contextWindow,
    available,
  };
}
