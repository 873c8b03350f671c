import { BadRequestError } from '../../lib/errors.js';
import { isObject, type JsonObject } from '../../lib/json.js';
import type { ChatBody, ChatMessage } from '../completion/completion.js';
import { fieldsWithin, isKnownField } from '../providers/shared/fields.js';

/** What clients send without wanting anything by it; what it says is what happens anyway. */
const MEANS_NOTHING = new Map<string, (value: unknown) => boolean>([
  ['store', (value) => value === false],
  ['service_tier', (value) => value === 'auto' || value === 'default'],
  ['modalities', (value) => Array.isArray(value) && value.every((each) => each === 'text')],
  // How long a prompt is kept in a cache, and what is told of the costs: none of it costs us more.
  ['prompt_cache_retention', () => true],
  ['prompt_cache_options', () => true],
  ['usage', () => true],
  ['tool_stream', () => true],
]);

/** Of a message: the rest, such as what a client got with an answer, is left out. */
const MESSAGE_FIELDS = [
  'role',
  'content',
  'name',
  'refusal',
  'tool_calls',
  'tool_call_id',
  'function_call',
  'reasoning',
  'reasoning_content',
  'reasoning_details',
] as const;

/** 400: names the field that we do not pass on, as OpenAI's API does. */
export class UnsupportedError extends BadRequestError {
  constructor(param: string, message = `${param} is not supported`) {
    super(message, { code: 'unsupported_parameter', param });
  }
}

/**
 * What a client asks for, of which all may be passed on: nothing in it costs what was not held. What
 * only says what happens anyway is left out.
 *
 * @throws UnsupportedError for anything else.
 */
export function supportedRequest(body: ChatBody): ChatBody {
  const fields: [string, unknown][] = [];
  for (const [field, value] of Object.entries(body)) {
    if (value === undefined || value === null) continue;
    if (isKnownField(field)) fields.push([field, supportedField(field, value)]);
    else if (MEANS_NOTHING.get(field)?.(value) !== true) throw new UnsupportedError(field);
  }
  return { ...Object.fromEntries(fields), messages: body.messages.map(supportedMessage) };
}

function supportedField(field: string, value: unknown): unknown {
  if (field === 'tools' && Array.isArray(value)) return value.map(supportedTool);
  const known = fieldsWithin(field);
  if (known === undefined || !isObject(value)) return value;
  const unknown = Object.keys(value).find((name) => !known.has(name));
  if (unknown !== undefined) throw new UnsupportedError(`${field}.${unknown}`);
  return value;
}

/** Functions of the client's own: what a provider runs itself, it charges for. */
function supportedTool(tool: unknown, index: number): unknown {
  const param = `tools[${index}]`;
  if (!isObject(tool)) throw new UnsupportedError(param, `${param} must be an object`);
  if (tool.type !== 'function') {
    throw new UnsupportedError(`${param}.type`, `${param}.type must be function`);
  }
  const { function: declared } = tool;
  if (!isObject(declared)) throw new UnsupportedError(param, `${param}.function must be an object`);
  const { name, description, parameters, strict } = declared;
  return {
    type: 'function',
    function: defined({ name, description, parameters, strict }),
    ...cacheControl(tool),
  };
}

function supportedMessage(message: ChatMessage, index: number): ChatMessage {
  const supported: Record<string, unknown> = {};
  for (const field of MESSAGE_FIELDS) {
    if (message[field] !== undefined) supported[field] = message[field];
  }
  if (Array.isArray(message.content)) {
    supported.content = message.content.map((part: unknown, at) =>
      supportedPart(part, `messages[${index}].content[${at}]`),
    );
  }
  // `role` is one of the fields.
  return supported as ChatMessage;
}

function supportedPart(part: unknown, param: string): JsonObject {
  if (!isObject(part)) throw new UnsupportedError(param, `${param} must be an object`);
  switch (part.type) {
    case 'text':
      return { type: 'text', ...defined({ text: part.text }), ...cacheControl(part) };
    case 'refusal':
      return { type: 'refusal', ...defined({ refusal: part.refusal }) };
    case 'image_url':
      return { type: 'image_url', image_url: image(part.image_url, param), ...cacheControl(part) };
    default:
      throw new UnsupportedError(`${param}.type`);
  }
}

function image(given: unknown, param: string): JsonObject {
  const { url, detail } = isObject(given) ? given : {};
  const where = `${param}.image_url.url`;
  // What is behind a data URL of another type is read as a document or a film.
  if (typeof url !== 'string' || !/^(data:image\/|https?:\/\/)/i.test(url)) {
    throw new UnsupportedError(where, `${where} must be an image's data URL, or http(s)`);
  }
  if (isOfOurKey(url)) throw new UnsupportedError(where, `${where} must not be a file of Gemini's`);
  return { url, ...defined({ detail }) };
}

/** Gemini reads such a file with our key: what it says of one that is not ours sounds like a refused key. */
function isOfOurKey(url: string): boolean {
  if (/^data:/i.test(url) || !URL.canParse(url)) return false;
  return /^generativelanguage\.googleapis\.com\.?$/i.test(new URL(url).hostname);
}

/** Without a time of its own, for which Anthropic charges twice as much. */
function cacheControl({ cache_control: control }: JsonObject): object {
  return isObject(control) && control.type === 'ephemeral'
    ? { cache_control: { type: 'ephemeral' } }
    : {};
}

function defined(fields: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
