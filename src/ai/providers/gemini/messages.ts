import * as z from 'zod';
import type { ChatMessage, ChatRequest } from '../../completion/completion.js';
import { imagePart, MEDIA_TYPES } from './image.js';
import { badRequest, parsed } from './input.js';
import type { JsonObject } from '../../../lib/json.js';
import {
  beginOfTurn,
  CONTINUE,
  hasTypeOf,
  isLenient,
  NO_TEXT,
  withReadImages,
} from '../shared/left-out.js';
import { REFUSED_IN_NAMES } from './names.js';
import { NOT_FROM_GEMINI } from '../shared/reasoning.js';
import { parseArguments, parseObject, withToolCalls } from '../shared/tool-calls.js';

type Part = JsonObject;

interface Content {
  readonly role: 'user' | 'model';
  readonly parts: Part[];
}

const textPart = z.object({ type: z.literal('text'), text: z.string() });
const imageUrlPart = z.object({
  type: z.literal('image_url'),
  image_url: z.object({ url: z.string() }),
});
const refusalPart = z.object({ type: z.literal('refusal'), refusal: z.string() });

const textContent = z.array(textPart);
const mixedContent = z.array(z.discriminatedUnion('type', [textPart, imageUrlPart]));
const assistantContent = z.array(z.discriminatedUnion('type', [textPart, refusalPart])).nullish();

const toolCalls = z
  .array(
    z.object({
      id: z.string(),
      type: z.literal('function').optional(),
      function: z.object({ name: z.string(), arguments: z.string() }),
      extra_content: z
        .object({ google: z.object({ thought_signature: z.string() }) })
        .optional()
        // Another provider's extra content, meaningless to Gemini.
        .catch(undefined),
    }),
  )
  .nullish();

const NEEDS_NO_SIGNATURE = /^gemini-[12]\b/;

/** Converts a conversation. @throws ProviderError `bad_request` for messages that Gemini cannot express. */
export function toContents({ model, messages: given }: Pick<ChatRequest, 'model' | 'messages'>): {
  readonly contents: readonly Content[];
  readonly systemInstruction: { readonly parts: readonly Part[] } | undefined;
} {
  const messages = withToolCalls(given, { refusedInNames: REFUSED_IN_NAMES });
  const current = beginOfTurn(messages);
  const system: Part[] = [];
  const contents: Content[] = [];
  const functionNames = new Map<string, string>();
  /** The content that collects the results of one turn's calls: Gemini requires them together. */
  let results: Content | undefined;
  for (const [at, message] of messages.entries()) {
    const content = isLenient(message, at, current)
      ? withReadImages(message.content, (part) => hasTypeOf(MEDIA_TYPES, part))
      : message.content;
    if (message.role === 'tool') {
      if (!results) contents.push((results = { role: 'user', parts: [] }));
      results.parts.push(...functionResponse(message, content, functionNames));
      continue;
    }
    results = undefined;
    switch (message.role) {
      case 'system':
      case 'developer':
        for (const text of texts(content)) if (text !== '') system.push({ text });
        break;
      case 'user':
        contents.push({ role: 'user', parts: userParts(content) });
        break;
      case 'assistant': {
        const parts = assistantParts(message, functionNames, !NEEDS_NO_SIGNATURE.test(model));
        // Gemini refuses content without parts, and calls in an answer that follows an answer.
        const last = contents.at(-1);
        if (last?.role === 'model') last.parts.push(...parts);
        else if (parts.length > 0) contents.push({ role: 'model', parts });
        break;
      }
      default:
        throw badRequest();
    }
  }
  return {
    contents: withUsersTurns(contents),
    systemInstruction: system.length > 0 ? { parts: system } : undefined,
  };
}

/** Adds the user's turns that Gemini requires: before the first answer, and after the last one. */
function withUsersTurns(contents: readonly Content[]): Content[] {
  const says = (text: string): Content => ({ role: 'user', parts: [{ text }] });
  return [
    ...(contents[0]?.role === 'user' ? [] : [says(NO_TEXT)]),
    ...contents,
    ...(contents.at(-1)?.role === 'model' ? [says(CONTINUE)] : []),
  ];
}

function texts(content: unknown): readonly string[] {
  if (content === undefined || content === null) return [];
  if (typeof content === 'string') return [content];
  return parsed(textContent, content).map(({ text }) => text);
}

function userParts(content: unknown): Part[] {
  const parts = mixedParts(content);
  return parts.length > 0 ? parts : [{ text: NO_TEXT }];
}

/** Converts texts and images, without empty texts, which Gemini refuses. */
function mixedParts(content: unknown): Part[] {
  if (content === undefined || content === null) return [];
  if (typeof content === 'string') return content === '' ? [] : [{ text: content }];
  return parsed(mixedContent, content).flatMap((part): Part[] => {
    if (part.type === 'image_url') return [imagePart(part.image_url.url)];
    return part.text === '' ? [] : [{ text: part.text }];
  });
}

function assistantParts(
  { content, tool_calls: called }: ChatMessage,
  functionNames: Map<string, string>,
  needsSignature: boolean,
): Part[] {
  const said =
    typeof content === 'string'
      ? [content]
      : parsed(assistantContent, content)?.map((part) =>
          part.type === 'text' ? part.text : part.refusal,
        );
  const parts: Part[] = [];
  for (const text of said ?? []) if (text !== '') parts.push({ text });

  const calls = parsed(toolCalls, called) ?? [];
  for (const [index, { id, function: fn, extra_content: extra }] of calls.entries()) {
    functionNames.set(id, fn.name);
    // Gemini signs only the first of several parallel calls.
    const made = needsSignature && index === 0 ? NOT_FROM_GEMINI : undefined;
    parts.push({
      functionCall: { id, name: fn.name, args: parseArguments(fn.arguments) },
      thoughtSignature: extra?.google.thought_signature ?? made,
    });
  }
  return parts;
}

/** Converts a result; its images follow the response, which may contain only JSON. */
function functionResponse(
  { tool_call_id: id }: ChatMessage,
  content: unknown,
  functionNames: ReadonlyMap<string, string>,
): Part[] {
  const name = typeof id === 'string' ? functionNames.get(id) : undefined;
  if (name === undefined) throw badRequest();
  const parts = mixedParts(content);
  const result = parts.map(({ text }) => (typeof text === 'string' ? text : '')).join('');
  const images = parts.filter(({ text }) => text === undefined);
  return [
    { functionResponse: { id, name, response: jsonObject(result) ?? { result } } },
    ...images,
  ];
}

function jsonObject(text: string): JsonObject | undefined {
  // Gemini would read a schema's `$ref` in a result as a reference to an image of the result.
  if (text.includes('"$ref"')) return undefined;
  // Results are long, so text that cannot be an object is not parsed.
  return /^\s*\{/.test(text) ? parseObject(text) : undefined;
}
