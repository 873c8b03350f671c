import { isObject, type JsonObject } from '../../../lib/json.js';
import type { ChatMessage, ChatRequest } from '../../completion/completion.js';
import {
  beginOfTurn,
  hasTypeOf,
  isLenient,
  NO_ANSWER,
  NO_TEXT,
  RESULT_IMAGES,
  withReadImages,
} from '../shared/left-out.js';
import { withJsonAsked } from '../shared/json-answer.js';
import { withoutFields } from '../shared/fields.js';
import { withGeminiSignature } from '../shared/reasoning.js';
import { parameterSchema } from '../shared/tool-schema.js';
import { withToolCalls } from '../shared/tool-calls.js';
import type { ServerRules } from './rules.js';

const IMAGE_TYPES: ReadonlySet<string> = new Set([
  'image/png',
  'image/jpeg',
  'image/webp',
  'image/gif',
]);

/** Returns the messages in the form that the server accepts. */
export function messagesFor(rules: ServerRules, request: ChatRequest): ChatMessage[] {
  const { model } = request;
  const asked = rules.requiresJsonAsked ? withJsonAsked(request) : request.messages;
  const form = rules.callForm(model);
  const all = withToolCalls(asked, form);
  const given = rules.takesOneInstruction(model) ? withOneInstruction(all) : all;
  const current = beginOfTurn(given);
  const sent: ChatMessage[] = [];
  /** Images of one round of tool results, which follow as a message of the user. */
  let images: unknown[] = [];
  const addImages = () => {
    if (images.length > 0) {
      sent.push({ role: 'user', content: [{ type: 'text', text: RESULT_IMAGES }, ...images] });
    }
    images = [];
  };
  for (const [at, message] of given.entries()) {
    if (message.role !== 'tool') addImages();
    const isStrict = !isLenient(message, at, current);
    const isRead = (part: unknown) =>
      !isImage(part) || (rules.takesImages(model) && (isStrict || hasTypeOf(IMAGE_TYPES, part)));
    const parts = withTakenParts(withReadImages(message.content, isRead), rules);
    const [own, moved] = message.role === 'tool' ? withoutImages(parts) : [parts, []];
    images.push(...moved);
    const next = messageFor(rules, model, message, contentOf(message.role, own, rules));
    if (next) sent.push(next);
  }
  addImages();
  if (sent.length === 0) return [{ role: 'user', content: NO_TEXT }];
  return form.requiresAnswer === true ? withAnswers(sent) : sent;
}

/** Adds an answer between tool results and a message that is neither a result nor an answer. */
function withAnswers(messages: readonly ChatMessage[]): ChatMessage[] {
  return messages.flatMap((message, at) => {
    const isAnswered = ['tool', 'assistant'].includes(message.role);
    return messages[at - 1]?.role === 'tool' && !isAnswered
      ? [{ role: 'assistant', content: NO_ANSWER }, message]
      : [message];
  });
}

const isInstruction = ({ role }: ChatMessage): boolean => role === 'system' || role === 'developer';

/** Joins all instructions at the beginning. */
function withOneInstruction(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  const all = messages.filter(isInstruction);
  if (all.length === 0 || (all.length === 1 && all[0] === messages[0])) return messages;
  const content = all.flatMap(({ content: said }): unknown[] =>
    Array.isArray(said) ? said : [{ type: 'text', text: said ?? '' }],
  );
  return [{ role: 'system', content }, ...messages.filter((each) => !isInstruction(each))];
}

/** Fields of an answer without content; only reasoning is no answer. */
const SAID = ['tool_calls', 'function_call', 'refusal'];

const MAY_BE_LEFT_OUT: ReadonlySet<string> = new Set(['assistant', 'system', 'developer']);

/** Returns undefined for an empty answer or instruction, which most servers refuse. */
function messageFor(
  rules: ServerRules,
  model: string,
  message: ChatMessage,
  content: unknown,
): ChatMessage | undefined {
  const { role } = message;
  const fields: Record<string, unknown> = {};
  for (const field of rules.messageFields[role] ?? []) {
    const value = fieldFor(rules, field, message[field]);
    if (value !== undefined && value !== null) fields[field] = value;
  }
  if (rules.requiresSignature(model) && Array.isArray(fields.tool_calls)) {
    fields.reasoning_details = withGeminiSignature(fields.reasoning_details, fields.tool_calls);
  }
  const isEmpty =
    content === undefined || content === null || content === '' || isEmptyList(content);
  const isSaid = SAID.some((field) => field in fields);
  if (isEmpty && !isSaid && MAY_BE_LEFT_OUT.has(role)) return undefined;
  const name = role === 'developer' && !rules.takesDeveloper ? 'system' : role;
  const sent = isEmptyList(content) ? null : content;
  return { role: name, ...(sent !== undefined && { content: sent }), ...fields };
}

/** Characters that OpenAI refuses in the name of a speaker. */
const REFUSED_IN_NAMES = /[\s<|\\/>]+/g;

const MAX_NAME_LENGTH = 64;

function fieldFor(rules: ServerRules, field: string, value: unknown): unknown {
  if (field === 'name' && typeof value === 'string') {
    return value.replace(REFUSED_IN_NAMES, '_').slice(0, MAX_NAME_LENGTH) || undefined;
  }
  if (field === 'reasoning_details' && Array.isArray(value)) {
    const details = value.filter(rules.takesDetail);
    return details.length > 0 ? details : undefined;
  }
  if (field !== 'tool_calls' || !Array.isArray(value)) return value;
  return value.map((call: unknown) => {
    if (!isObject(call)) return call;
    const extra = rules.callFields.filter((name) => call[name] !== undefined);
    return {
      id: call.id,
      type: 'function',
      function: call.function,
      ...Object.fromEntries(extra.map((name) => [name, call[name]])),
    };
  });
}

/** Separates the images from the other parts. */
function withoutImages(content: unknown): readonly [unknown, readonly unknown[]] {
  if (!Array.isArray(content)) return [content, []];
  const parts: readonly unknown[] = content;
  return [parts.filter((part) => !isImage(part)), parts.filter(isImage)];
}

/**
 * Returns content whose parts the server accepts: a refusal becomes a text, because few servers accept
 * refusals.
 */
function withTakenParts(content: unknown, rules: ServerRules): unknown {
  if (!Array.isArray(content)) return content;
  return content.map((part: unknown) => {
    if (!isObject(part)) return part;
    const { cache_control: control, ...others } = part;
    return {
      ...(part.type === 'refusal' ? { type: 'text', text: part.refusal ?? '' } : others),
      ...(control !== undefined && rules.takesCacheControl && { cache_control: control }),
    };
  });
}

/**
 * Returns content that the server accepts: a text in place of missing content, of an empty list, or of a list
 * of texts.
 */
function contentOf(role: string, content: unknown, rules: ServerRules): unknown {
  if (isNothing(content)) {
    if (role === 'user') return NO_TEXT;
    if (role !== 'assistant') return '';
    return Array.isArray(content) ? [] : content;
  }
  if (!Array.isArray(content)) return content;
  if (rules.takesTextLists || !content.every(isText)) return content;
  return content.map(({ text }) => text).join('\n');
}

/** Reports whether a content has neither a text nor an image. */
function isNothing(content: unknown): boolean {
  if (!Array.isArray(content)) return content === undefined || content === null || content === '';
  return content.every((part: unknown) => isText(part) && part.text === '');
}

const isEmptyList = (content: unknown): boolean => Array.isArray(content) && content.length === 0;

const isImage = (part: unknown): boolean => isObject(part) && part.type === 'image_url';

const isText = (part: unknown): part is { readonly text: string } =>
  isObject(part) && part.type === 'text' && typeof part.text === 'string';

/** Fields that need tools. */
const ABOUT_TOOLS = ['tool_choice', 'parallel_tool_calls'];

/** Returns the request with its tools in the form that the server accepts; an empty list is left out. */
export function withTools(rules: ServerRules, request: ChatRequest): ChatRequest {
  const { tools } = request;
  if (tools === undefined && ABOUT_TOOLS.every((field) => !(field in request))) return request;
  if (Array.isArray(tools) && tools.length > 0) {
    return { ...request, tools: tools.map((tool: unknown) => toolFor(rules, tool)) };
  }
  if (tools !== undefined && !Array.isArray(tools)) return request;
  return withoutFields(request, ['tools', ...ABOUT_TOOLS]);
}

function toolFor(rules: ServerRules, tool: unknown): unknown {
  if (!isObject(tool) || !isObject(tool.function)) return tool;
  const { cache_control: control, function: declared, ...others } = tool;
  return {
    ...others,
    function: withSchema(rules, declared),
    ...(control !== undefined && rules.takesCacheControl && { cache_control: control }),
  };
}

function withSchema(rules: ServerRules, declared: JsonObject): JsonObject {
  const { parameters = rules.requiresProperties ? {} : undefined } = declared;
  if (!isObject(parameters)) return declared;
  const schema = parameterSchema(parameters);
  const isBare = rules.requiresProperties && schema.properties === undefined;
  return { ...declared, parameters: isBare ? { ...schema, properties: {} } : schema };
}
