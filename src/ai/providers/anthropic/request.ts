import type { ChatRequest } from '../../completion/completion.js';
import { toConversation } from './messages.js';
import { takesSampling } from './models.js';
import { toToolChoice, toTools } from './tools.js';
import { isObject, type JsonObject } from '../../../lib/json.js';

/** Anthropic requires a limit, OpenAI does not. */
const DEFAULT_MAX_TOKENS = 4096;

/** OpenAI's format allows 2. */
const MAX_TEMPERATURE = 1;

/** Converts a chat completion. @throws ProviderError `bad_request` for one that Anthropic cannot express. */
export function toMessagesRequest(request: ChatRequest): JsonObject {
  const { system, messages } = toConversation(request.messages);
  const tools = toTools(request.tools);
  const { model, thinking, top_k: topK } = request;
  return {
    model,
    max_tokens: request.max_completion_tokens ?? request.max_tokens ?? DEFAULT_MAX_TOKENS,
    messages,
    ...(system.length > 0 && { system }),
    ...(request.stream === true && { stream: true }),
    ...(tools.length > 0 && { tools, ...toToolChoice(request) }),
    ...sampling(request),
    ...stopSequences(request.stop),
    ...metadata(request),
    ...(isObject(thinking) && { thinking }),
    ...(typeof topK === 'number' && { top_k: topK }),
    ...outputConfig(request),
  };
}

function sampling({ model, temperature, top_p: topP }: ChatRequest): JsonObject {
  if (!takesSampling(model)) return {};
  // Models since 4.1 accept only one of temperature and top_p, and many clients send both.
  if (typeof temperature === 'number') {
    return { temperature: Math.min(temperature, MAX_TEMPERATURE) };
  }
  return typeof topP === 'number' ? { top_p: topP } : {};
}

/** Converts stop sequences, without those of only white space, which Anthropic refuses. */
function stopSequences(stop: unknown): JsonObject {
  const sequences = (Array.isArray(stop) ? stop : [stop]).filter(
    (sequence: unknown) => typeof sequence === 'string' && sequence.trim() !== '',
  );
  return sequences.length > 0 ? { stop_sequences: sequences } : {};
}

/** Passes on Anthropic's own metadata, with a `user_id`; Anthropic refuses OpenAI's labels. */
function metadata({ metadata: given, user }: ChatRequest): JsonObject {
  if (isObject(given) && 'user_id' in given) return { metadata: given };
  return typeof user === 'string' ? { metadata: { user_id: user } } : {};
}

/** Converts a JSON schema to Anthropic's `output_config`; "any JSON" has no counterpart. */
function outputConfig({ response_format: format, output_config: config }: ChatRequest): JsonObject {
  const own = isObject(config) ? config : undefined;
  const isSchema = isObject(format) && format.type === 'json_schema';
  const schema = isSchema && isObject(format.json_schema) ? format.json_schema.schema : undefined;
  if (!isObject(schema)) return own ? { output_config: own } : {};
  return { output_config: { ...own, format: { type: 'json_schema', schema } } };
}
