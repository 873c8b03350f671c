import * as z from 'zod';
import { isObject } from '../../../lib/json.js';
import { modelName, readEntries, tokenCount, type ListedModel } from '../shared/model-list.js';

const entry = z
  .object({ id: modelName, max_input_tokens: tokenCount, max_tokens: tokenCount })
  .transform(
    ({ id: name, max_input_tokens: contextWindow, max_tokens: maxOutput }): ListedModel => ({
      name,
      contextWindow,
      maxOutput,
    }),
  );

/** Reads a list in Anthropic's form; undefined for any other body. */
export function readAnthropicList(body: unknown): ListedModel[] | undefined {
  return isObject(body) && Array.isArray(body.data) ? readEntries(body.data, entry) : undefined;
}
