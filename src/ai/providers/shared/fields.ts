import type { ChatRequest } from '../../completion/completion.js';
import type { ProviderName } from '../../completion/provider-names.js';

/**
 * Fields that every provider accepts, and that cost only tokens covered by the hold. All others are dropped:
 * searches, storage, other models or queue priority cost extra, or tokens that cannot be estimated.
 */
const COMMON = [
  'model',
  'messages',
  'stream',
  'stream_options',
  'max_tokens',
  'max_completion_tokens',
  'n',
  'temperature',
  'top_p',
  'stop',
  'seed',
  'presence_penalty',
  'frequency_penalty',
  'logit_bias',
  'logprobs',
  'top_logprobs',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'functions',
  'function_call',
  'response_format',
  'reasoning_effort',
  'verbosity',
  'user',
  'safety_identifier',
  'prompt_cache_key',
] as const;

/** OpenAI's own fields are those of compatible servers. */
const OWN = {
  openrouter: ['reasoning', 'include_reasoning', 'top_k', 'min_p', 'top_a', 'repetition_penalty'],
  gemini: ['generationConfig', 'safetySettings'],
  groq: ['reasoning_format', 'include_reasoning'],
  anthropic: ['metadata', 'thinking', 'top_k', 'output_config'],
  openai: ['top_k', 'min_p', 'repetition_penalty', 'enable_thinking', 'chat_template_kwargs'],
  minimax: ['reasoning_split'],
} as const satisfies Readonly<Record<ProviderName, readonly string[]>>;

const NESTED: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  ['stream_options', new Set(['include_usage', 'include_obfuscation'])],
  ['reasoning', new Set(['effort', 'max_tokens', 'exclude', 'enabled', 'summary'])],
  ['thinking', new Set(['type', 'budget_tokens', 'display'])],
  ['output_config', new Set(['effort'])],
  [
    'generationConfig',
    new Set(['temperature', 'topP', 'topK', 'maxOutputTokens', 'stopSequences', 'thinkingConfig']),
  ],
]);

const COMMON_FIELDS: ReadonlySet<string> = new Set(COMMON);
const ALL_FIELDS: ReadonlySet<string> = new Set([...COMMON, ...Object.values(OWN).flat()]);

export const isKnownField = (field: string): boolean => ALL_FIELDS.has(field);

/** Returns a request without these fields, which must not include the model or the messages. */
export function withoutFields(request: ChatRequest, fields: readonly string[]): ChatRequest {
  const kept = Object.entries(request).filter(([field]) => !fields.includes(field));
  return Object.fromEntries(kept) as ChatRequest;
}

/** Returns the allowed subfields; undefined if they are not restricted. */
export const fieldsWithin = (field: string): ReadonlySet<string> | undefined => NESTED.get(field);

/**
 * Returns the fields that the provider accepts, without those that its server refuses; without a name, for
 * OpenAI itself, the common fields.
 */
export function acceptedFields(
  name: ProviderName | undefined,
  refused: ReadonlySet<string>,
  request: ChatRequest,
): ChatRequest {
  const own: readonly string[] = name === undefined ? [] : OWN[name];
  const fields = Object.entries(request).filter(
    ([field]) => (COMMON_FIELDS.has(field) || own.includes(field)) && !refused.has(field),
  );
  // The common fields include `model` and `messages`.
  return Object.fromEntries(fields) as ChatRequest;
}
