import * as z from 'zod';
import type { ChatRequest, Completion, TokenUsage } from '../../completion/completion.js';
import { ProviderError } from '../../completion/provider-error.js';
import {
  PROVIDER_BASE_URLS,
  type ProviderConfig,
  type ProviderName,
} from '../../completion/provider-names.js';
import {
  DONE,
  type ProviderAdapter,
  type StreamReader,
  type WireEvent,
} from '../shared/adapter.js';
import { withinCacheBounds } from '../shared/cache-control.js';
import { acceptedFields } from '../shared/fields.js';
import { bytesOf, wantsUsage } from '../shared/openai-format.js';
import { errorIn, failureOf, failureOfError, refuseError } from './errors.js';
import { messagesFor, withTools } from './messages.js';
import { readOpenAiList } from './models.js';
import { AnswerForm } from './answer-form.js';
import { rulesOf } from './rules.js';
import { isObject, tryParseJson } from '../../../lib/json.js';
import { retryAfterMs } from '../../../lib/retry-after.js';

const count = z.number().int().min(0);

/** An invalid usage counts as missing, since the answer itself may be valid. */
const usage = z
  .object({
    prompt_tokens: count,
    completion_tokens: count,
    prompt_tokens_details: z
      .object({ cached_tokens: count.nullish(), cache_write_tokens: count.nullish() })
      .nullish()
      .catch(undefined),
    /** DeepSeek's and Moonshot's fields for the tokens of the prompt cache. */
    prompt_cache_hit_tokens: count.nullish().catch(undefined),
    cached_tokens: count.nullish().catch(undefined),
  })
  .nullish()
  .catch(undefined);

const answer = z.object({
  choices: z.array(z.object({ message: z.looseObject({ content: z.string().nullish() }) })).min(1),
  usage,
});

const chunk = z.object({
  choices: z
    .array(z.object({ finish_reason: z.string().nullish(), delta: z.unknown().optional() }))
    .nullish(),
  usage,
  /** Groq's field for the usage, and for the error that ended the answer early. */
  x_groq: z.object({ usage, error: z.string().nullish() }).nullish(),
});

/** Returns the adapter for a provider with OpenAI's format, as far as its server accepts the format. */
export function openAiCompatible(name: ProviderName): ProviderAdapter {
  return {
    takesSeveralAnswers: name === 'openai',
    takesImages: ({ baseUrl }, model) => rulesOf(name, baseUrl).takesImages(model),

    request(provider, request) {
      const { baseUrl } = provider;
      return {
        url: `${baseUrl}/chat/completions`,
        headers: { 'content-type': 'application/json', ...authorization(provider) },
        body: JSON.stringify(bodyFor(name, baseUrl, request)),
      };
    },

    readAnswer(text) {
      const body = parse(name, text);
      refuseError(name, body);
      const whole = new AnswerForm('message').read(body);
      const read = answer.safeParse(whole);
      if (!read.success) throw new ProviderError(name, 'garbage');
      return {
        json: whole === body ? text : serialize(name, whole),
        content: read.data.choices[0]?.message.content ?? '',
        bytes: read.data.choices.reduce((sum, { message }) => sum + bytesSaid(message), 0),
        usage: toUsage(read.data.usage),
      } satisfies Completion;
    },

    openStream: (request) => new ChunkReader(name, wantsUsage(request)),

    listRequest: (provider) => ({
      url: `${provider.baseUrl}/models`,
      headers: authorization(provider),
    }),
    readList: readOpenAiList,
    // OpenRouter shows its list to everybody.
    ...(name === 'openrouter' && {
      keyRequest: (provider: ProviderConfig) => ({
        url: `${provider.baseUrl}/key`,
        headers: authorization(provider),
      }),
    }),

    readError(status, headers, text) {
      return new ProviderError(
        name,
        failureOf(name, status, errorIn(tryParseJson(text)) ?? {}),
        status,
        retryAfterMs(headers),
      );
    },
  };
}

const authorization = ({ apiKey }: ProviderConfig): Readonly<Record<string, string>> =>
  apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };

function bodyFor(name: ProviderName, baseUrl: string, request: ChatRequest): ChatRequest {
  const rules = rulesOf(name, baseUrl);
  const isOpenAi = baseUrl === PROVIDER_BASE_URLS.openai;
  const taken = acceptedFields(isOpenAi ? undefined : name, rules.refusedFields, request);
  const { stream_options: options, ...requested } = rules.withSettings(withTools(rules, taken));
  const body = {
    ...requested,
    messages: messagesFor(rules, request),
    ...(request.stream === true && { stream_options: withUsage(options, name) }),
  };
  return rules.takesCacheControl ? withinCacheBounds(body) : body;
}

class ChunkReader implements StreamReader {
  usage: TokenUsage | undefined;
  ended = false;
  over = false;
  bytes = 0;

  readonly #name: ProviderName;
  readonly #includeUsage: boolean;
  readonly #form = new AnswerForm('delta');
  #hasChunk = false;

  constructor(name: ProviderName, includeUsage: boolean) {
    this.#name = name;
    this.#includeUsage = includeUsage;
  }

  read({ data, event }: WireEvent): readonly string[] {
    if (data === DONE) {
      this.ended = true;
      this.over = true;
      return [];
    }
    const body = parse(this.#name, data);
    refuseError(this.#name, body);
    if (event === 'error') throw failureOfError(this.#name, isObject(body) ? body : {});
    const whole = this.#form.read(body);
    const read = chunk.safeParse(whole);
    if (!read.success) throw new ProviderError(this.#name, 'garbage');
    const { choices, usage: said, x_groq: groq } = read.data;
    if (groq?.error) throw new ProviderError(this.#name, 'overloaded');
    this.usage = toUsage(said ?? groq?.usage) ?? this.usage;
    if (!choices && !said) return []; // not a chunk
    this.#hasChunk ||= choices !== undefined && choices !== null;
    for (const { delta } of choices ?? []) this.bytes += bytesSaid(delta);
    // Some providers close the connection instead of sending [DONE].
    if (choices?.some(({ finish_reason: reason }) => reason)) this.ended = true;
    if ((choices?.length ?? 0) === 0 && said && !this.#includeUsage) return [];
    return [whole === body ? data : serialize(this.#name, whole)];
  }

  finish(): readonly string[] {
    // An error in an unknown form can precede [DONE].
    if (!this.#hasChunk) throw new ProviderError(this.#name, 'garbage');
    return [];
  }
}

function bytesSaid(said: unknown): number {
  if (!isObject(said)) return 0;
  const { content, refusal, reasoning, reasoning_content: thoughts, tool_calls: calls } = said;
  const thought = reasoning ?? thoughts;
  let bytes = bytesOf(content, refusal, thought);
  // Some providers repeat the thinking here, and some have it only here.
  const details = typeof thought === 'string' ? [] : said.reasoning_details;
  for (const detail of Array.isArray(details) ? details : []) {
    if (isObject(detail)) bytes += bytesOf(detail.text, detail.summary);
  }
  for (const call of Array.isArray(calls) ? calls : []) {
    const { name, arguments: json } =
      isObject(call) && isObject(call.function) ? call.function : {};
    bytes += bytesOf(name, json);
  }
  return bytes;
}

/** Requests the usage; options beside it are OpenAI's own. */
const withUsage = (options: unknown, name: ProviderName) => ({
  ...(name === 'openai' && isObject(options) ? options : {}),
  include_usage: true,
});

function toUsage(said: z.output<typeof usage>): TokenUsage | undefined {
  if (!said) return undefined;
  const { prompt_tokens: inputTokens, completion_tokens: outputTokens } = said;
  const { cached_tokens: read, cache_write_tokens: written } = said.prompt_tokens_details ?? {};
  const otherwise = said.prompt_cache_hit_tokens ?? said.cached_tokens;
  return {
    inputTokens,
    outputTokens,
    cacheReadTokens: read ?? otherwise ?? undefined,
    cacheWriteTokens: written ?? undefined,
  };
}

function parse(name: ProviderName, text: string): unknown {
  const parsed = tryParseJson(text);
  if (parsed === undefined) throw new ProviderError(name, 'garbage');
  return parsed;
}

/** Serializes a body. @throws ProviderError if it is nested too deeply */
function serialize(name: ProviderName, body: unknown): string {
  try {
    return JSON.stringify(body);
  } catch (cause) {
    throw new ProviderError(name, 'garbage', undefined, undefined, { cause });
  }
}
