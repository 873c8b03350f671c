import * as z from 'zod';
import { isObject } from '../../../lib/json.js';
import { modelName, readEntries, tokenCount, type ListedModel } from '../shared/model-list.js';

const PREFIX = 'models/';
const ANSWERS = 'generateContent';

const entry = z
  .object({
    name: z
      .string()
      .startsWith(PREFIX)
      .transform((name) => name.slice(PREFIX.length))
      .pipe(modelName),
    inputTokenLimit: tokenCount,
    outputTokenLimit: tokenCount,
    supportedGenerationMethods: z.array(z.string()).default([ANSWERS]),
  })
  .refine(({ supportedGenerationMethods: methods }) => methods.includes(ANSWERS))
  .transform(
    ({ name, inputTokenLimit: contextWindow, outputTokenLimit: maxOutput }): ListedModel => ({
      name,
      contextWindow,
      maxOutput,
    }),
  );

/** Reads a list in Gemini's form; undefined for any other body. */
export function readGeminiList(body: unknown): ListedModel[] | undefined {
  return isObject(body) && Array.isArray(body.models) ? readEntries(body.models, entry) : undefined;
}
