import type { ChatRequest } from '../../completion/completion.js';
import type { ProviderName } from '../../completion/provider-names.js';

/**
 * Fields of a chat completion that cost nothing but tokens, of which what is held tells the most.
 * Whatever is not named here reaches no provider: a search, a store, another model or a better place
 * in the queue is charged beside the tokens, or for more of them than anybody can reckon.
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

/** What each takes beside those; OpenAI's are those of servers that are like it. */
const OWN = {
  openrouter: ['reasoning', 'include_reasoning', 'top_k', 'min_p', 'top_a', 'repetition_penalty'],
  gemini: ['generationConfig', 'safetySettings'],
  groq: ['reasoning_format', 'include_reasoning'],
  anthropic: ['metadata', 'thinking', 'top_k', 'output_config'],
  openai: ['top_k', 'min_p', 'repetition_penalty', 'enable_thinking', 'chat_template_kwargs'],
  minimax: ['reasoning_split'],
} as const satisfies Readonly<Record<ProviderName, readonly string[]>>;

/** What these fields may hold, where they hold fields of their own. */
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

/** Whether any provider takes it. */
export const isKnownField = (field: string): boolean => ALL_FIELDS.has(field);

/** What a field may hold; undefined for one of which that does not matter. */
export const fieldsWithin = (field: string): ReadonlySet<string> | undefined => NESTED.get(field);

/**
 * The request with nothing in it that the provider does not take.
 *
 * @param name undefined for OpenAI itself, which takes what all take.
 */
export function takenBy(name: ProviderName | undefined, request: ChatRequest): ChatRequest {
  const own: readonly string[] = name === undefined ? [] : OWN[name];
  const fields = Object.entries(request).filter(
    ([field]) => COMMON_FIELDS.has(field) || own.includes(field),
  );
  // `model` and `messages` are among the fields that all take.
  return Object.fromEntries(fields) as ChatRequest;
}
