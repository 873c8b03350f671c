import { BadRequestError } from '../../lib/errors.js';
import { isObject, type JsonObject } from '../../lib/json.js';
import type { ChatBody, ChatMessage } from '../completion/completion.js';
import { fieldsWithin, isKnownField } from '../providers/shared/fields.js';

/** Fields that clients send by default, with a check that the value only states the default behavior. */
const MEANS_NOTHING = new Map<string, (value: unknown) => boolean>([
  ['store', (value) => value === false],
  ['service_tier', (value) => value === 'auto' || value === 'default'],
  ['modalities', (value) => Array.isArray(value) && value.every((each) => each === 'text')],
  // Prompt cache retention and options cost the platform nothing extra.
  ['prompt_cache_retention', () => true],
  ['prompt_cache_options', () => true],
  ['usage', () => true],
  ['tool_stream', () => true],
]);

/** Message fields to pass on; the rest, such as fields copied from an answer, is dropped. */
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

/** 400 that names the unsupported field, as OpenAI's API does. */
export class UnsupportedError extends BadRequestError {
  override readonly name = 'UnsupportedError';

  constructor(param: string, message = `${param} is not supported`) {
    super(message, 'unsupported_parameter', { param });
  }
}

/**
 * Returns the fields that may be passed on, so that nothing costs more than was held. Fields that state the
 * default behavior are dropped. @throws UnsupportedError for any other field.
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
  if (field === 'tools' && Array.isArray(value)) return withOneOfEach(value.map(supportedTool));
  const known = fieldsWithin(field);
  if (known === undefined || !isObject(value)) return value;
  const unknown = Object.keys(value).find((name) => !known.has(name));
  if (unknown !== undefined) throw new UnsupportedError(`${field}.${unknown}`);
  return value;
}

/** Leaves out a second tool of one name, which Anthropic and Gemini refuse. */
function withOneOfEach(tools: readonly SupportedTool[]): SupportedTool[] {
  const names = new Set<unknown>();
  return tools.filter(({ function: { name } }) => !names.has(name) && names.add(name));
}

interface SupportedTool {
  readonly type: 'function';
  readonly function: JsonObject;
}

/** Admits only the client's own functions, since providers charge for tools they run themselves. */
function supportedTool(tool: unknown, index: number): SupportedTool {
  const param = `tools[${index}]`;
  if (!isObject(tool)) throw new UnsupportedError(param, `${param} must be an object`);
  const { type = isObject(tool.function) ? 'function' : undefined, function: declared } = tool;
  if (type !== 'function') {
    throw new UnsupportedError(`${param}.type`, `${param}.type must be function`);
  }
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
  // A data URL of another type would be read as a document or a video.
  if (typeof url !== 'string' || !/^(data:image\/|https?:\/\/)/i.test(url)) {
    throw new UnsupportedError(where, `${where} must be an image's data URL or an http(s) URL`);
  }
  if (isOfOurKey(url))
    throw new UnsupportedError(
      where,
      `${where} must not be a Gemini file: send the image as a data URL`,
    );
  return { url: withRightType(url), ...defined({ detail }) };
}

/** The beginnings of images in base64, by which providers check the declared type. */
const BEGINNINGS: readonly (readonly [string, string])[] = [
  ['iVBORw0KGgo', 'image/png'],
  ['/9j/', 'image/jpeg'],
  ['R0lGOD', 'image/gif'],
  ['UklGR', 'image/webp'],
];

/** Returns a data URL with the type of its bytes, since providers refuse one that is declared as another. */
function withRightType(url: string): string {
  const [head, declared = ''] =
    /^data:(image\/[^;,]*)[^,]{0,100};base64,/i.exec(url.slice(0, 200)) ?? [];
  if (head === undefined) return url;
  const known = BEGINNINGS.find(([beginning]) => url.startsWith(beginning, head.length))?.[1];
  const type = known ?? declared.toLowerCase().replace(/^image\/jpg$/, 'image/jpeg');
  return type === declared.toLowerCase() ? url : `data:${type};base64,${url.slice(head.length)}`;
}

/**
 * Reports whether a URL is a Gemini file, which Gemini reads with the platform's key. Its error for a foreign
 * file resembles a refused key.
 */
function isOfOurKey(url: string): boolean {
  if (/^data:/i.test(url) || !URL.canParse(url)) return false;
  return /^generativelanguage\.googleapis\.com\.?$/i.test(new URL(url).hostname);
}

/** Keeps cache_control without its ttl; Anthropic charges double for a longer one. */
function cacheControl({ cache_control: control }: JsonObject): object {
  return isObject(control) && control.type === 'ephemeral'
    ? { cache_control: { type: 'ephemeral' } }
    : {};
}

function defined(fields: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined && value !== null),
  );
}
