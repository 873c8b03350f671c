import { z } from 'zod';
import type { ChatRequest, TokenUsage } from '../../completion.js';
import type { StreamReader, WireEvent } from '../adapter.js';
import {
  toFinishReason,
  toOpenAiUsage,
  toTokenUsage,
  wireUsage,
  type WireUsage,
} from './answer.js';
import { errorInside } from './errors.js';
import { isObject, tryParseJson, type JsonObject } from '../../../json.js';

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
  }),
});
const blockDelta = z.object({
  delta: z.object({
    type: z.string(),
    text: z.string().nullish(),
    partial_json: z.string().nullish(),
  }),
});
const messageDelta = z.object({
  delta: z.object({ stop_reason: z.string().nullish() }),
  usage: wireUsage.nullish(),
});

/** A call of a tool whose arguments are coming in. */
interface OpenCall {
  /** Among the calls of this answer. */
  readonly index: number;
  readonly input: unknown;
  hasArguments: boolean;
}

/** Reads the events of one streamed message. Blocks come one after another. */
export class AnthropicStream implements StreamReader {
  ended = false;
  over = false;
  /** The fields that every chunk begins with, once the message has hasArguments. */
  private head: JsonObject | undefined;
  private used: WireUsage | undefined;
  private stopReason: string | null | undefined;
  private calls = 0;
  private call: OpenCall | undefined;
  private readonly includeUsage: boolean;

  constructor({ stream_options: options }: ChatRequest) {
    this.includeUsage = isObject(options) && options.include_usage === true;
  }

  get usage(): TokenUsage | undefined {
    return this.used && toTokenUsage(this.used);
  }

  read({ data }: WireEvent): readonly string[] {
    const event = tryParseJson(data);
    if (!isObject(event) || typeof event.type !== 'string') throw errorInside(event);
    switch (event.type) {
      case 'message_start':
        return this.begin(event);
      case 'content_block_start':
        return this.beginBlock(event);
      case 'content_block_delta':
        return this.continueBlock(event);
      case 'content_block_stop':
        return this.endBlock();
      case 'message_delta':
        return this.readMessageDelta(event);
      case 'message_stop':
        return this.end();
      case 'error':
        throw errorInside(event);
      default:
        // A ping, or one of those that Anthropic says may be added.
        return [];
    }
  }

  private begin(event: JsonObject): string[] {
    const { id, model, usage } = parsed(messageStart, event).message;
    const created = Math.floor(Date.now() / 1000);
    this.head = { id, object: 'chat.completion.chunk', created, model };
    this.used = usage;
    return [this.chunk({ role: 'assistant', content: '' })];
  }

  private beginBlock(event: JsonObject): string[] {
    const { type, text, id, name, input } = parsed(blockStart, event).content_block;
    this.call = undefined;
    if (type === 'text' && text) return [this.chunk({ content: text })];
    if (type !== 'tool_use') return [];
    if (!id || !name) throw errorInside(event);
    const index = this.calls++;
    this.call = { index, input, hasArguments: false };
    const call = { index, id, type: 'function', function: { name, arguments: '' } };
    return [this.chunk({ tool_calls: [call] })];
  }

  private continueBlock(event: JsonObject): string[] {
    const { type, text, partial_json: json } = parsed(blockDelta, event).delta;
    if (type === 'text_delta' && text) return [this.chunk({ content: text })];
    // Without an open call these are the arguments of a tool that the provider runs itself.
    if (type === 'input_json_delta' && json && this.call)
      return [this.appendArguments(this.call, json)];
    return [];
  }

  private endBlock(): string[] {
    const { call } = this;
    this.call = undefined;
    // Nothing comes for a tool without arguments, and clients parse what has come.
    return call && !call.hasArguments
      ? [this.appendArguments(call, JSON.stringify(call.input ?? {}))]
      : [];
  }

  private appendArguments(call: OpenCall, json: string): string {
    call.hasArguments = true;
    return this.chunk({ tool_calls: [{ index: call.index, function: { arguments: json } }] });
  }

  private readMessageDelta(event: JsonObject): string[] {
    const { delta, usage } = parsed(messageDelta, event);
    this.stopReason = delta.stop_reason ?? this.stopReason;
    // The numbers are totals; what is not told has not changed.
    for (const [name, value] of Object.entries(usage ?? {})) {
      if (value !== null) this.used = { ...this.used, [name]: value };
    }
    return [];
  }

  private end(): string[] {
    const last = this.chunk({}, toFinishReason(this.stopReason));
    this.ended = true;
    this.over = true;
    if (!this.includeUsage || !this.used) return [last];
    const usage = toOpenAiUsage(this.used);
    return [last, JSON.stringify({ ...this.head, choices: [], usage })];
  }

  /** @throws ProviderError when the message has not hasArguments, or is over. */
  private chunk(delta: JsonObject, finishReason: string | null = null): string {
    if (!this.head || this.ended) throw errorInside(undefined);
    return JSON.stringify({
      ...this.head,
      choices: [{ index: 0, delta, logprobs: null, finish_reason: finishReason }],
      // OpenAI's API has the field in every chunk when it is asked for.
      ...(this.includeUsage && { usage: null }),
    });
  }
}

/** @throws ProviderError for an event that is not of its kind. */
function parsed<T>(schema: z.ZodType<T>, event: JsonObject): T {
  const read = schema.safeParse(event);
  if (!read.success) throw errorInside(event);
  return read.data;
}
