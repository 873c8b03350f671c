import * as z from 'zod';
import type { TokenUsage } from '../../src/ai/completion/completion.js';

/** Token usage of a call, with OpenAI's field names. */
export const usageItem = z
  .strictObject({
    prompt_tokens: z.int(),
    completion_tokens: z.int(),
    total_tokens: z.int(),
  })
  .meta({ id: 'TokenUsage' });

export function presentUsage({ inputTokens, outputTokens }: TokenUsage): z.infer<typeof usageItem> {
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
  };
}
