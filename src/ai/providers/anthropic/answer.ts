import * as z from 'zod';
import { tryParseJson } from '../../../lib/json.js';
import type { ChatRequest, Completion } from '../../completion/completion.js';
import {
  toCompletion,
  toolCall,
  type FinishReason,
  type ToolCall,
  type Used,
} from '../shared/openai-format.js';
import { reasoningDetail, type ReasoningDetail } from '../shared/reasoning.js';
import { errorInside } from './errors.js';

const count = z.number().int().min(0);

export const wireUsage = z.object({
  input_tokens: count.nullish(),
  cache_creation_input_tokens: count.nullish(),
  cache_read_input_tokens: count.nullish(),
  output_tokens: count.nullish(),
});
export type WireUsage = z.output<typeof wireUsage>;

const block = z.union([
  z.object({ type: z.literal('text'), text: z.string() }),
  z.object({
    type: z.literal('tool_use'),
    id: z.string(),
    name: z.string(),
    input: z.unknown().optional(),
  }),
  z.object({ type: z.literal('thinking'), thinking: z.string(), signature: z.string() }),
  z.object({ type: z.literal('redacted_thinking'), data: z.string() }),
  // The provider's own tools, and block types added later.
  z
    .object({ type: z.string() })
    .refine(({ type }) => type !== 'text' && type !== 'tool_use')
    .transform(() => ({ type: 'other' as const })),
]);

const answer = z.object({
  type: z.literal('message'),
  id: z.string(),
  model: z.string(),
  content: z.array(block),
  stop_reason: z.string().nullish(),
  usage: wireUsage,
});

/** Parses a whole message; `requested` is the model's name in the request. @throws ProviderError if the body is an error or not a message. */
export function readMessage(text: string, { model: requested }: ChatRequest): Completion {
  const body = tryParseJson(text);
  const read = answer.safeParse(body);
  if (!read.success) throw errorInside(body);
  const { id, model, content: blocks, stop_reason: reason } = read.data;
  let content = '';
  const calls: ToolCall[] = [];
  const reasoning: ReasoningDetail[] = [];
  for (const [index, piece] of blocks.entries()) {
    if (piece.type === 'thinking' || piece.type === 'redacted_thinking') {
      reasoning.push(reasoningDetail(requested, index, piece));
    }
    if (piece.type === 'text') content += piece.text;
    if (piece.type === 'tool_use') {
      calls.push(toolCall(piece.id, piece.name, JSON.stringify(piece.input ?? {})));
    }
  }
  const used = toUsed(read.data.usage);
  return toCompletion({
    id,
    model,
    content,
    calls,
    reasoning,
    reason: toFinishReason(reason),
    used,
  });
}

/** Converts Anthropic's usage, whose `input_tokens` exclude tokens of the prompt cache. */
export function toUsed(usage: WireUsage): Used {
  const cacheReadTokens = usage.cache_read_input_tokens ?? undefined;
  const cacheWriteTokens = usage.cache_creation_input_tokens ?? undefined;
  const inputTokens = (usage.input_tokens ?? 0) + (cacheWriteTokens ?? 0) + (cacheReadTokens ?? 0);
  const outputTokens = usage.output_tokens ?? 0;
  return { tokens: { inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens } };
}

/** Maps a stop reason; a reason without a counterpart becomes `stop`. */
export function toFinishReason(stopReason: string | null | undefined): FinishReason {
  switch (stopReason) {
    case 'max_tokens':
    case 'model_context_window_exceeded':
      return 'length';
    case 'tool_use':
      return 'tool_calls';
    case 'refusal':
      return 'content_filter';
    default:
      return 'stop';
  }
}
