import * as z from 'zod';
import { isObject } from '../../../lib/json.js';
import { modelName, readEntries, tokenCount, type ListedModel } from '../shared/model-list.js';

/** An entry of `GET /models`; each server has its own name for the sizes, and some have none. */
const entry = z
  .object({
    id: modelName,
    max_model_len: tokenCount, // vLLM
    context_window: tokenCount, // Groq
    context_length: tokenCount, // OpenRouter
    max_context_length: tokenCount, // LM Studio
    meta: z.object({ n_ctx: tokenCount }).nullish().catch(undefined), // llama.cpp
    max_completion_tokens: tokenCount,
    supported_parameters: z.array(z.string()).optional().catch(undefined), // OpenRouter
    owned_by: z.string().optional().catch(undefined),
    top_provider: z.object({ max_completion_tokens: tokenCount }).nullish().catch(undefined),
  })
  .transform(({ id: name, meta, owned_by: owner, top_provider: top, ...sizes }): ListedModel => {
    const { max_model_len: a, context_window: b, context_length: c, max_context_length: d } = sizes;
    return {
      name,
      contextWindow: a ?? b ?? c ?? d ?? meta?.n_ctx,
      maxOutput: sizes.max_completion_tokens ?? top?.max_completion_tokens,
      takesTools: sizes.supported_parameters?.includes('tools'),
      owner,
    };
  });

/** Reads a list in OpenAI's form; undefined for any other body. */
export function readOpenAiList(body: unknown): ListedModel[] | undefined {
  return isObject(body) && Array.isArray(body.data) ? readEntries(body.data, entry) : undefined;
}
