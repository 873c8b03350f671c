import * as z from 'zod';
import type { ChatRequest, TokenUsage } from '../../completion/completion.js';
import type { StreamReader, WireEvent } from '../shared/adapter.js';
import { isObject, tryParseJson, type JsonObject } from '../../../lib/json.js';
import { bytesOf, ChunkWriter, toolCall } from '../shared/openai-format.js';
import { reasoningDetail, type ThinkingBlock } from '../shared/reasoning.js';
import { toFinishReason, toUsed, wireUsage, type WireUsage } from './answer.js';
import { errorInside } from './errors.js';

const messageStart = z.object({
  message: z.object({ id: z.string(), model: z.string(), usage: wireUsage }),
});
const blockStart = z.object({
  content_block: z.object({
    type: z.string(),
    text: z.string().nullish(),
    id: z.string().nullish(),
    name: z.string().nullish(),
    input: z.unknown().optional(),
    data: z.string().nullish(),
  }),
});
const blockDelta = z.object({
  delta: z.object({
    type: z.string(),
    text: z.string().nullish(),
    partial_json: z.string().nullish(),
    thinking: z.string().nullish(),
    signature: z.string().nullish(),
  }),
});
const messageDelta = z.object({
  delta: z.object({ stop_reason: z.string().nullish() }),
  usage: wireUsage.nullish(),
});

/** Characters; a longer block of thinking is not returned, and the next turn has no thinking. */
const MAX_THINKING_LENGTH = 4 * 1024 * 1024;

interface OpenThinking {
  thinking: string;
  signature: string;
}

interface OpenCall {
  /** Position among the tool calls of this answer. */
  readonly index: number;
  readonly input: unknown;
  hasArguments: boolean;
}

/** Reads the events of one streamed message, whose blocks arrive one after another. */
export class AnthropicStream implements StreamReader {
  ended = false;
  over = false;
  bytes = 0;
  /** Undefined until the message begins. */
  #chunks: ChunkWriter | undefined;
  #used: WireUsage | undefined;
  #stopReason: string | null | undefined;
  #calls = 0;
  #call: OpenCall | undefined;
  #thinking: OpenThinking | undefined;
  #blocks = 0;
  readonly #request: ChatRequest;

  constructor(request: ChatRequest) {
    this.#request = request;
  }

  get usage(): TokenUsage | undefined {
    return this.#used && toUsed(this.#used).tokens;
  }

  read({ data }: WireEvent): readonly string[] {
    const event = tryParseJson(data);
    if (!isObject(event) || typeof event.type !== 'string') throw errorInside(event);
    switch (event.type) {
      case 'message_start':
        return this.#begin(event);
      case 'content_block_start':
        return this.#beginBlock(event);
      case 'content_block_delta':
        return this.#continueBlock(event);
      case 'content_block_stop':
        return this.#endBlock();
      case 'message_delta':
        return this.#readMessageDelta(event);
      case 'message_stop':
        return this.#end();
      case 'error':
        throw errorInside(event);
      default:
        // A ping, or an event type that Anthropic reserves the right to add.
        return [];
    }
  }

  finish(): readonly string[] {
    return [];
  }

  #begin(event: JsonObject): string[] {
    const { id, model, usage } = parsed(messageStart, event).message;
    this.#chunks = new ChunkWriter(this.#request, id, model);
    this.#used = usage;
    return [this.#write({ content: '' })];
  }

  #beginBlock(event: JsonObject): string[] {
    const { type, text, id, name, input, data } = parsed(blockStart, event).content_block;
    this.bytes += bytesOf(text, name);
    this.#call = undefined;
    this.#thinking = type === 'thinking' ? { thinking: '', signature: '' } : undefined;
    this.#blocks++;
    if (type === 'redacted_thinking' && data) return [this.#giveOut({ type, data })];
    if (type === 'text' && text) return [this.#write({ content: text })];
    if (type !== 'tool_use') return [];
    if (!id || !name) throw errorInside(event);
    const index = this.#calls++;
    this.#call = { index, input, hasArguments: false };
    return [this.#write({ tool_calls: [{ index, ...toolCall(id, name, '') }] })];
  }

  #continueBlock(event: JsonObject): string[] {
    const { type, text, partial_json: json, thinking, signature } = parsed(blockDelta, event).delta;
    this.bytes += bytesOf(text, json, thinking);
    if (this.#thinking) this.#collect(this.#thinking, thinking ?? '', signature ?? '');
    if (type === 'text_delta' && text) return [this.#write({ content: text })];
    // Without an open call, these arguments belong to a tool that the provider runs itself.
    if (type === 'input_json_delta' && json && this.#call)
      return [this.#appendArguments(this.#call, json)];
    return [];
  }

  #collect(open: OpenThinking, thinking: string, signature: string): void {
    open.thinking += thinking;
    open.signature += signature;
    const length = open.thinking.length + open.signature.length;
    if (length > MAX_THINKING_LENGTH) this.#thinking = undefined;
  }

  #giveOut(block: ThinkingBlock): string {
    const detail = reasoningDetail(this.#request.model, this.#blocks - 1, block);
    return this.#write({ reasoning_details: [detail] });
  }

  #endBlock(): string[] {
    const call = this.#call;
    const thinking = this.#thinking;
    this.#call = undefined;
    this.#thinking = undefined;
    if (thinking?.signature) return [this.#giveOut({ type: 'thinking', ...thinking })];
    // A tool without arguments gets no argument events, but clients parse the arguments.
    return call && !call.hasArguments
      ? [this.#appendArguments(call, JSON.stringify(call.input ?? {}))]
      : [];
  }

  #appendArguments(call: OpenCall, json: string): string {
    call.hasArguments = true;
    return this.#write({ tool_calls: [{ index: call.index, function: { arguments: json } }] });
  }

  #readMessageDelta(event: JsonObject): string[] {
    const { delta, usage } = parsed(messageDelta, event);
    this.#stopReason = delta.stop_reason ?? this.#stopReason;
    // The numbers are totals; a null number is unchanged.
    for (const [name, value] of Object.entries(usage ?? {})) {
      if (value !== null) this.#used = { ...this.#used, [name]: value };
    }
    return [];
  }

  #end(): string[] {
    const last = this.#write({}, toFinishReason(this.#stopReason));
    this.ended = true;
    this.over = true;
    return [last, ...(this.#chunks?.writeUsage(this.#used && toUsed(this.#used)) ?? [])];
  }

  /** Writes a chunk. @throws ProviderError if the message has not begun or has ended. */
  #write(...chunk: Parameters<ChunkWriter['write']>): string {
    if (!this.#chunks || this.ended) throw errorInside(undefined);
    return this.#chunks.write(...chunk);
  }
}

function parsed<T>(schema: z.ZodType<T>, event: JsonObject): T {
  const read = schema.safeParse(event);
  if (!read.success) throw errorInside(event);
  return read.data;
}
