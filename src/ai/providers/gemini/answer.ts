import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { TokenUsage } from '../../completion.js';
import { ProviderError, type ProviderFailure } from '../../provider-error.js';
import { geminiError } from './error.js';
import { toJson } from './json.js';
import { tryParseJson } from '../../../json.js';

const part = z.object({
  text: z.string().nullish(),
  thought: z.boolean().nullish(),
  thoughtSignature: z.string().nullish(),
  functionCall: z
    .object({ id: z.string().nullish(), name: z.string(), args: z.unknown().optional() })
    .nullish(),
});

const candidate = z.object({
  content: z.object({ parts: z.array(part).nullish() }).nullish(),
  finishReason: z.string().nullish(),
});

const tokens = z.number().int().min(0).nullish();

const response = z.object({
  candidates: z.array(candidate).nullish(),
  promptFeedback: z.object({ blockReason: z.string().nullish() }).nullish(),
  usageMetadata: z
    .object({
      promptTokenCount: tokens,
      toolUsePromptTokenCount: tokens,
      cachedContentTokenCount: tokens,
      candidatesTokenCount: tokens,
      thoughtsTokenCount: tokens,
    })
    .nullish(),
});

export type GeminiCandidate = z.output<typeof candidate>;
type GeminiUsage = z.output<typeof response>['usageMetadata'];

/**
 * Reads a `GenerateContentResponse`: a whole answer, or one event of a stream.
 *
 * @throws ProviderError for an error in its place, a prompt that is blocked, and anything else.
 */
export function readGemini(text: string): z.output<typeof response> {
  const body = tryParseJson(text);
  const error = geminiError(body);
  if (error) throw error;
  const read = response.safeParse(body);
  if (!read.success) throw new ProviderError('gemini', 'garbage');
  const { candidates, promptFeedback, usageMetadata } = read.data;
  if (!candidates && !promptFeedback && !usageMetadata) {
    throw new ProviderError('gemini', 'garbage');
  }
  const blocked = typeof promptFeedback?.blockReason === 'string';
  if (blocked && !candidates?.length) throw new ProviderError('gemini', 'refused');
  return read.data;
}

/** A tool call as OpenAI has it, with Gemini's signature where Google's own translation puts it. */
interface ToolCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
  readonly extra_content?: { readonly google: { readonly thought_signature: string } };
}

/** What a candidate says to the client: its text without the thinking, and its tool calls. */
export function readParts(from: GeminiCandidate | undefined): { text: string; calls: ToolCall[] } {
  let text = '';
  const calls: ToolCall[] = [];
  for (const { text: said, thought, thoughtSignature, functionCall } of from?.content?.parts ??
    []) {
    if (functionCall) {
      calls.push({
        id: functionCall.id || `call_${randomUUID()}`,
        type: 'function',
        function: {
          name: functionCall.name,
          arguments: toJson(functionCall.args ?? {}, 'garbage'),
        },
        ...(thoughtSignature && {
          extra_content: { google: { thought_signature: thoughtSignature } },
        }),
      });
    } else if (said && thought !== true) {
      text += said;
    }
  }
  return { text, calls };
}

type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter';

const FINISHED: ReadonlyMap<string, FinishReason> = new Map([
  ['MAX_TOKENS', 'length'],
  ['SAFETY', 'content_filter'],
  ['PROHIBITED_CONTENT', 'content_filter'],
  ['BLOCKLIST', 'content_filter'],
  ['SPII', 'content_filter'],
  ['RECITATION', 'content_filter'],
  ['IMAGE_SAFETY', 'content_filter'],
  ['IMAGE_PROHIBITED_CONTENT', 'content_filter'],
  ['IMAGE_RECITATION', 'content_filter'],
]);

/** Ends after which what was said is not an answer: the model meant to call a tool, and failed. */
const FAILED: ReadonlyMap<string, ProviderFailure> = new Map([
  ['MALFORMED_FUNCTION_CALL', 'garbage'],
  ['MALFORMED_RESPONSE', 'garbage'],
  ['UNEXPECTED_TOOL_CALL', 'garbage'],
  ['TOO_MANY_TOOL_CALLS', 'garbage'],
  ['MISSING_THOUGHT_SIGNATURE', 'bad_request'],
]);

/**
 * @param reason Gemini's; one that is not known is taken for an end if anything was said.
 * @throws ProviderError for one that is a failure.
 */
export function finishReason(
  reason: string | null | undefined,
  { said, called }: { readonly said: boolean; readonly called: boolean },
): FinishReason {
  const failed = FAILED.get(reason ?? '');
  if (failed) throw new ProviderError('gemini', failed);
  const known = FINISHED.get(reason ?? '');
  if (known) return known;
  if (reason !== 'STOP' && !said && !called) throw new ProviderError('gemini', 'garbage');
  return called ? 'tool_calls' : 'stop';
}

/** What was used, and the same as OpenAI says it; undefined where the tokens are not told. */
export function readUsage(
  from: GeminiUsage,
): { readonly usage: TokenUsage; readonly openAi: object } | undefined {
  if (typeof from?.promptTokenCount !== 'number') return undefined;
  const inputTokens = from.promptTokenCount + (from.toolUsePromptTokenCount ?? 0);
  const thinking = from.thoughtsTokenCount ?? 0;
  const outputTokens = (from.candidatesTokenCount ?? 0) + thinking;
  return {
    usage: { inputTokens, outputTokens },
    openAi: {
      prompt_tokens: inputTokens,
      completion_tokens: outputTokens,
      total_tokens: inputTokens + outputTokens,
      prompt_tokens_details: { cached_tokens: from.cachedContentTokenCount ?? 0 },
      completion_tokens_details: { reasoning_tokens: thinking },
    },
  };
}
