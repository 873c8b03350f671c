import * as z from 'zod';
import type { ChatRequest, Completion, TokenUsage } from '../../completion/completion.js';
import { ProviderError, type ProviderFailure } from '../../completion/provider-error.js';
import { PROVIDER_BASE_URLS, type ProviderName } from '../../completion/provider-names.js';
import { DONE, type ProviderAdapter, type StreamReader } from '../shared/adapter.js';
import { acceptedFields } from '../shared/fields.js';
import { failureOfStatus } from '../shared/failure-of-status.js';
import { bytesOf, wantsUsage } from '../shared/openai-format.js';
import { isObject, tryParseJson } from '../../../lib/json.js';
import { retryAfterMs } from '../../../lib/retry-after.js';

/** An invalid usage counts as missing, since the answer itself may be valid. */
const usage = z
  .object({ prompt_tokens: z.number().int().min(0), completion_tokens: z.number().int().min(0) })
  .nullish()
  .catch(undefined);

/** OpenRouter's `code` is a status; that of OpenAI and Groq is a word. */
const failure = z.object({
  code: z.union([z.string(), z.number()]).nullish(),
  type: z.string().nullish(),
});

/** MiniMax reports errors here, under a 200; 0 means success. */
const baseResponse = z.object({ status_code: z.number() }).nullish();

const answer = z.object({
  choices: z
    .array(
      z.object({
        message: z.looseObject({ content: z.string().nullish() }),
        error: z.undefined().nullish(),
      }),
    )
    .min(1),
  usage,
  error: z.undefined().nullish(),
});

const chunk = z.object({
  choices: z
    .array(z.object({ finish_reason: z.string().nullish(), delta: z.unknown().optional() }))
    .nullish(),
  usage,
  /** Groq's field for the usage, and for the error that ended the answer early. */
  x_groq: z.object({ usage, error: z.string().nullish() }).nullish(),
});

const withError = z.object({ error: failure });
/** OpenRouter's format for an answer that the model broke off. */
const withChoiceError = z.object({ choices: z.array(withError).min(1) });
const withBase = z.object({ base_resp: baseResponse });

/** Returns the adapter for a provider with OpenAI's format; the conversation passes through unchanged. */
export function openAiCompatible(name: ProviderName): ProviderAdapter {
  return {
    request({ baseUrl, apiKey }, request) {
      return {
        url: `${baseUrl}/chat/completions`,
        headers: {
          'content-type': 'application/json',
          ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }),
        },
        body: JSON.stringify(bodyFor(name, baseUrl, request)),
      };
    },

    readAnswer(text) {
      const body = parse(name, text);
      const read = answer.safeParse(body);
      if (!read.success) throw failureInside(name, body);
      refuseBaseResponse(name, body);
      return {
        json: text,
        content: read.data.choices[0]?.message.content ?? '',
        bytes: read.data.choices.reduce((sum, { message }) => sum + bytesSaid(message), 0),
        usage: toUsage(read.data.usage),
      } satisfies Completion;
    },

    openStream: (request) => new ChunkReader(name, wantsUsage(request)),

    readError(status, headers, text) {
      const said = withError.safeParse(tryParseJson(text));
      const code = said.success ? said.data.error.code : undefined;
      const type = said.success ? said.data.error.type : undefined;
      return new ProviderError(
        name,
        failureOf(name, status, [code, type]),
        status,
        retryAfterMs(headers),
      );
    },
  };
}

function bodyFor(name: ProviderName, baseUrl: string, request: ChatRequest): ChatRequest {
  const isOpenAi = baseUrl === PROVIDER_BASE_URLS.openai;
  const taken = acceptedFields(isOpenAi ? undefined : name, request);
  const asked =
    request.stream === true
      ? { ...taken, stream_options: withUsage(request.stream_options) }
      : taken;
  return isOpenAi ? withOwnBound(asked) : asked;
}

/** Renames the output bound: OpenAI's newer models refuse the old name, compatible servers require it. */
function withOwnBound({ max_tokens: most, ...request }: ChatRequest): ChatRequest {
  return most === undefined ? request : { max_completion_tokens: most, ...request };
}

class ChunkReader implements StreamReader {
  usage: TokenUsage | undefined;
  ended = false;
  over = false;
  bytes = 0;

  readonly #name: ProviderName;
  readonly #includeUsage: boolean;

  constructor(name: ProviderName, includeUsage: boolean) {
    this.#name = name;
    this.#includeUsage = includeUsage;
  }

  read({ data }: { readonly data: string }): readonly string[] {
    if (data === DONE) {
      this.ended = true;
      this.over = true;
      return [];
    }
    const body = parse(this.#name, data);
    const read = chunk.safeParse(body);
    const inside = withError.safeParse(body);
    if (!read.success || inside.success) throw failureInside(this.#name, body);
    refuseBaseResponse(this.#name, body);
    const { choices, usage: said, x_groq: groq } = read.data;
    if (groq?.error) throw new ProviderError(this.#name, 'overloaded');
    this.usage = toUsage(said ?? groq?.usage) ?? this.usage;
    for (const { delta } of choices ?? []) this.bytes += bytesSaid(delta);
    // Some providers close the connection instead of sending [DONE].
    if (choices?.some(({ finish_reason: reason }) => reason)) this.ended = true;
    return (choices?.length ?? 0) === 0 && said && !this.#includeUsage ? [] : [data];
  }

  finish(): readonly string[] {
    return [];
  }
}

function bytesSaid(said: unknown): number {
  if (!isObject(said)) return 0;
  const { content, refusal, reasoning, reasoning_content: thoughts, tool_calls: calls } = said;
  let bytes = bytesOf(content, refusal, reasoning ?? thoughts);
  for (const call of Array.isArray(calls) ? calls : []) {
    const { name, arguments: json } =
      isObject(call) && isObject(call.function) ? call.function : {};
    bytes += bytesOf(name, json);
  }
  return bytes;
}

const withUsage = (options: unknown) => ({
  ...(isObject(options) ? options : {}),
  include_usage: true,
});

function toUsage(said: z.output<typeof usage>): TokenUsage | undefined {
  if (!said) return undefined;
  return { inputTokens: said.prompt_tokens, outputTokens: said.completion_tokens };
}

function failureInside(name: ProviderName, body: unknown): ProviderError {
  refuseBaseResponse(name, body);
  const said = withError.safeParse(body).data ?? withChoiceError.safeParse(body).data?.choices[0];
  if (!said) return new ProviderError(name, 'garbage');
  const { code, type } = said.error;
  const status = Number(code);
  return status >= 400 && status < 600
    ? new ProviderError(name, failureOf(name, status, [type]), status)
    : new ProviderError(name, failureOf(name, 500, [code, type]));
}

/** MiniMax's own error codes, as far as they distinguish failures. */
const BASE_FAILURES: Readonly<Record<number, ProviderFailure>> = {
  1001: 'overloaded',
  1002: 'rate_limited',
  1004: 'bad_key',
  1008: 'bad_key',
  1026: 'refused',
  1027: 'refused',
  1039: 'rate_limited', // tokens per minute
  2013: 'bad_request',
  2049: 'bad_key',
};

/** Refuses MiniMax's error codes under a 200. @throws ProviderError */
function refuseBaseResponse(name: ProviderName, body: unknown): void {
  const code = withBase.safeParse(body).data?.base_resp?.status_code ?? 0;
  if (code !== 0) throw new ProviderError(name, BASE_FAILURES[code] ?? 'overloaded');
}

/** Failures for the error codes and types of the OpenAI format, whatever the status. */
const NAMED_FAILURES = new Map<string, ProviderFailure>(
  Object.entries({
    context_length_exceeded: 'too_long',
    request_too_large: 'too_long',
    model_not_found: 'unknown_model',
    content_filter: 'refused',
    content_policy_violation: 'refused',
    insufficient_quota: 'bad_key',
    invalid_api_key: 'bad_key',
    rate_limit_exceeded: 'rate_limited',
  } as const),
);

function failureOf(name: ProviderName, status: number, words: readonly unknown[]): ProviderFailure {
  for (const word of words) {
    const known = typeof word === 'string' ? NAMED_FAILURES.get(word) : undefined;
    if (known) return known;
  }
  // At OpenRouter a 403 is a moderation refusal.
  if (status === 403 && name === 'openrouter') return 'refused';
  return failureOfStatus(status);
}

function parse(name: ProviderName, text: string): unknown {
  const parsed = tryParseJson(text);
  if (parsed === undefined) throw new ProviderError(name, 'garbage');
  return parsed;
}
