import { createHash } from 'node:crypto';
import type { ChatRequest } from '../../completion/completion.js';
import { defaultOutput } from '../../completion/token-bound.js';
import { withinCacheBounds } from '../shared/cache-control.js';
import { continuesThinking, hasThinking, toConversation } from './messages.js';
import { maxOutputOf, takesSampling, thinkingReplay, thinkingSettings } from './models.js';
import { strictSchema } from './strict-schema.js';
import { toThinking, WITHOUT_THINKING, withDropping, type Thinking } from './thinking.js';
import { calledTools, toToolChoice, toTools } from './tools.js';
import { isObject, type JsonObject } from '../../../lib/json.js';

/** OpenAI's format allows 2. */
const MAX_TEMPERATURE = 1;

/** The lowest `top_p` that Anthropic accepts while a model thinks. */
const MIN_THINKING_TOP_P = 0.95;

/** Converts a chat completion. @throws ProviderError `bad_request` for one that Anthropic cannot express. */
export function toMessagesRequest(request: ChatRequest): JsonObject {
  const { model } = request;
  const maxTokens = outputBoundOf(request);
  const { conversation, thinking } = thinkingConversation(request, maxTokens);
  const { system, messages } = conversation;
  const takesForced = thinkingSettings(model) !== 'always';
  return withinCacheBounds({
    model,
    max_tokens: maxTokens,
    messages,
    ...(system.length > 0 && { system }),
    ...(request.stream === true && { stream: true }),
    ...toolsOf(request, takesForced),
    ...sampling(request, thinking),
    ...stopSequences(request.stop),
    ...metadata(request),
    ...(thinking.setting && { thinking: thinking.setting }),
    ...outputConfig(request),
  });
}

/** Converts the conversation, with the thinking that the model accepts in it. */
function thinkingConversation(request: ChatRequest, maxTokens: number) {
  const { model } = request;
  const thinking = toThinking(request, maxTokens);
  const replay = thinkingReplay(model);
  const thinks = thinking.isOn && replay !== 'none';
  const conversation = toConversation(request, thinks);
  if (thinking.setting?.type === 'enabled' && !continuesThinking(conversation)) {
    const plain = toConversation(request, false);
    return { conversation: plain, thinking: WITHOUT_THINKING };
  }
  const mayRefuse = replay === 'bound' && conversation.messages.some(hasThinking);
  return { conversation, thinking: mayRefuse ? withDropping(thinking) : thinking };
}

/** Declares the tools; those of earlier calls too, which Anthropic requires even if no more calls are wanted. */
function toolsOf(request: ChatRequest, takesForced: boolean): JsonObject {
  const tools = toTools(request.tools);
  if (tools.length > 0) return { tools, ...toToolChoice(request, takesForced) };
  const called = calledTools(request.messages);
  return called.length > 0 ? { tools: called, tool_choice: { type: 'none' } } : {};
}

/** Returns the limit of the answer, which Anthropic requires and OpenAI does not. */
function outputBoundOf(request: ChatRequest): number {
  const requested = request.max_completion_tokens ?? request.max_tokens ?? defaultOutput(request);
  return Math.min(requested, maxOutputOf(request.model));
}

function sampling(
  { model, temperature, top_p: topP, top_k: topK }: ChatRequest,
  { isOn }: Thinking,
): JsonObject {
  if (!takesSampling(model)) return {};
  // A thinking model accepts no temperature and no top_k.
  if (isOn) return typeof topP === 'number' && topP >= MIN_THINKING_TOP_P ? { top_p: topP } : {};
  return {
    ...(typeof topK === 'number' && { top_k: topK }),
    // Models since 4.1 accept only one of temperature and top_p, and many clients send both.
    ...(typeof temperature === 'number'
      ? { temperature: Math.min(temperature, MAX_TEMPERATURE) }
      : typeof topP === 'number' && { top_p: topP }),
  };
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
  return typeof user === 'string' ? { metadata: { user_id: opaqueId(user) } } : {};
}

/** Matches an address or a telephone number, which Anthropic refuses as the id of a user. */
const IS_PERSONAL = /@|^\+?[\d\s().-]{7,}$/;

/** Upper bound of the id of a user at Anthropic, in characters. */
const MAX_USER_ID_LENGTH = 256;

function opaqueId(user: string): string {
  if (user.length <= MAX_USER_ID_LENGTH && !IS_PERSONAL.test(user)) return user;
  return createHash('sha256').update(user).digest('hex');
}

/** Converts a JSON schema to Anthropic's `output_config`; "any JSON" can only be requested in the prompt. */
function outputConfig({ response_format: format, output_config: config }: ChatRequest): JsonObject {
  const own = isObject(config) ? config : undefined;
  const isSchema = isObject(format) && format.type === 'json_schema';
  const schema = isSchema && isObject(format.json_schema) ? format.json_schema.schema : undefined;
  if (!isObject(schema)) return own ? { output_config: own } : {};
  return {
    output_config: { ...own, format: { type: 'json_schema', schema: strictSchema(schema) } },
  };
}
