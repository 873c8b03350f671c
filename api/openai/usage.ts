import type { TokenUsage } from '../../src/ai/completion.js';

/** As OpenAI's API spells it. */
export function presentUsage({ inputTokens, outputTokens }: TokenUsage) {
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
  };
}
