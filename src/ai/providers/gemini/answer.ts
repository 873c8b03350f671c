import { randomUUID } from 'node:crypto';
import * as z from 'zod';
import { tryParseJson } from '../../../lib/json.js';
import type { ChatRequest } from '../../completion/completion.js';
import { ProviderError, type ProviderFailure } from '../../completion/provider-error.js';
import { toolCall, type FinishReason, type ToolCall, type Used } from '../shared/openai-format.js';
import { geminiError } from './error.js';
import { toJson } from './json.js';
import { declaredName } from './names.js';

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

/** Reads a whole answer, or one event of a stream. @throws ProviderError also for a blocked prompt. */
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

/** A tool call with Gemini's signature, in the field that Google's own OpenAI endpoint uses. */
interface SignedToolCall extends ToolCall {
  readonly extra_content?: { readonly google: { readonly thought_signature: string } };
}

export function readParts(
  candidate: GeminiCandidate | undefined,
  request: ChatRequest,
): {
  text: string;
  calls: SignedToolCall[];
  thoughts: string;
} {
  let text = '';
  let thoughts = '';
  const calls: SignedToolCall[] = [];
  for (const part of candidate?.content?.parts ?? []) {
    const { text: said, thought, thoughtSignature: signature, functionCall: call } = part;
    if (call) {
      const json = toJson(call.args ?? {}, 'garbage');
      calls.push({
        ...toolCall(call.id || `call_${randomUUID()}`, declaredName(call.name, request), json),
        ...(signature && { extra_content: { google: { thought_signature: signature } } }),
      });
    } else if (said) {
      if (thought === true) thoughts += said;
      else text += said;
    }
  }
  return { text, calls, thoughts };
}

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

/** Finish reasons that make the answer invalid, such as a malformed tool call. */
const FAILED: ReadonlyMap<string, ProviderFailure> = new Map([
  ['MALFORMED_FUNCTION_CALL', 'garbage'],
  ['MALFORMED_RESPONSE', 'garbage'],
  ['UNEXPECTED_TOOL_CALL', 'garbage'],
  ['TOO_MANY_TOOL_CALLS', 'garbage'],
  ['MISSING_THOUGHT_SIGNATURE', 'bad_request'],
]);

/** Maps a finish reason; an unknown one counts as an end if there was output. @throws ProviderError */
export function finishReason(
  reason: string | null | undefined,
  { said, called }: { readonly said: boolean; readonly called: boolean },
): FinishReason {
  refuseFailed(reason);
  const known = FINISHED.get(reason ?? '');
  if (known) return known;
  if (reason !== 'STOP' && !said && !called) throw new ProviderError('gemini', 'garbage');
  return called ? 'tool_calls' : 'stop';
}

/** Refuses a reason that makes the answer invalid. @throws ProviderError */
export function refuseFailed(reason: string | null | undefined): void {
  const failed = FAILED.get(reason ?? '');
  if (failed) throw new ProviderError('gemini', failed);
}

export function readUsed(from: GeminiUsage): Used | undefined {
  if (typeof from?.promptTokenCount !== 'number') return undefined;
  const inputTokens = from.promptTokenCount + (from.toolUsePromptTokenCount ?? 0);
  const thinking = from.thoughtsTokenCount ?? 0;
  const outputTokens = (from.candidatesTokenCount ?? 0) + thinking;
  const cacheReadTokens = from.cachedContentTokenCount ?? undefined;
  return { tokens: { inputTokens, cacheReadTokens, outputTokens }, thinking };
}
