import { isObject } from '../../../lib/json.js';
import type { ChatRequest, Completion, TokenUsage } from '../../completion/completion.js';
import type { ReasoningDetail } from './reasoning.js';

export interface ToolCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
}

export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter';

export interface Used {
  readonly tokens: TokenUsage;
  /** Undefined if not reported separately. */
  readonly thinking?: number;
}

/** Reports whether the client of a stream requested a final usage chunk. */
export const wantsUsage = ({ stream_options: options }: ChatRequest): boolean =>
  isObject(options) && options.include_usage === true;

export function bytesOf(...texts: readonly unknown[]): number {
  let bytes = 0;
  for (const text of texts) if (typeof text === 'string') bytes += Buffer.byteLength(text);
  return bytes;
}

export function toolCall(id: string, name: string, json: string): ToolCall {
  return { id, type: 'function', function: { name, arguments: json } };
}

export function toCompletion(answer: {
  readonly id: string;
  readonly model: string;
  readonly content: string;
  readonly calls: readonly ToolCall[];
  readonly reasoning?: readonly ReasoningDetail[];
  readonly reason: FinishReason;
  readonly used: Used | undefined;
}): Completion {
  const { id, model, content, calls, reasoning = [], reason, used } = answer;
  const message = {
    role: 'assistant',
    content: content === '' && calls.length > 0 ? null : content,
    refusal: null,
    ...(calls.length > 0 && { tool_calls: calls }),
    ...(reasoning.length > 0 && { reasoning_details: reasoning }),
  };
  const json = JSON.stringify({
    ...head('chat.completion', id, model),
    choices: [{ index: 0, message, logprobs: null, finish_reason: reason }],
    usage: used && toUsage(used),
  });
  const bytes = bytesOf(content, ...calls.map((call) => call.function.arguments));
  return { json, content, bytes, usage: used?.tokens };
}

export class ChunkWriter {
  readonly #head: object;
  readonly #includeUsage: boolean;
  #hasWritten = false;

  constructor(request: ChatRequest, id: string, model: string) {
    this.#head = head('chat.completion.chunk', id, model);
    this.#includeUsage = wantsUsage(request);
  }

  /** The first chunk carries the role. */
  get hasWritten(): boolean {
    return this.#hasWritten;
  }

  write(delta: object, reason: FinishReason | null = null): string {
    const whole = this.#hasWritten ? delta : { role: 'assistant', ...delta };
    this.#hasWritten = true;
    return JSON.stringify({
      ...this.#head,
      choices: [{ index: 0, delta: whole, logprobs: null, finish_reason: reason }],
      // When usage is requested, OpenAI's API has the field in every chunk.
      ...(this.#includeUsage && { usage: null }),
    });
  }

  /** Returns the usage chunk; empty if the client did not request usage. */
  writeUsage(used: Used | undefined): string[] {
    if (!this.#includeUsage || !used) return [];
    return [JSON.stringify({ ...this.#head, choices: [], usage: toUsage(used) })];
  }
}

const head = (object: string, id: string, model: string) => ({
  id,
  object,
  created: Math.floor(Date.now() / 1000),
  model,
});

function toUsage({ tokens, thinking }: Used) {
  const { inputTokens, outputTokens, cacheReadTokens = 0, cacheWriteTokens } = tokens;
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    prompt_tokens_details: {
      cached_tokens: cacheReadTokens,
      ...(cacheWriteTokens !== undefined && { cache_write_tokens: cacheWriteTokens }),
    },
    ...(thinking !== undefined && { completion_tokens_details: { reasoning_tokens: thinking } }),
  };
}
