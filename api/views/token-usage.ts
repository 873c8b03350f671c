import * as z from 'zod';
import type { TokenUsage } from '../../src/ai/completion/completion.js';

/** Token usage of a call, with OpenAI's field names. */
export const usageItem = z.strictObject({
  prompt_tokens: z.number(),
  completion_tokens: z.number(),
  total_tokens: z.number(),
});

export function presentUsage({ inputTokens, outputTokens }: TokenUsage): z.infer<typeof usageItem> {
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
  };
}
