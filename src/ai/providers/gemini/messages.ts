import * as z from 'zod';
import type { ChatMessage, ChatRequest } from '../../completion/completion.js';
import { imagePart } from './image.js';
import { badRequest, parsed } from './input.js';
import { isObject, tryParseJson, type JsonObject } from '../../../lib/json.js';

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
const userContent = z.array(z.discriminatedUnion('type', [textPart, imageUrlPart]));
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

/**
 * Google's marker for a call that Gemini did not make: Gemini 3 and later refuse a call without a signature.
 */
const NOT_FROM_GEMINI = 'skip_thought_signature_validator';
const NEEDS_NO_SIGNATURE = /^gemini-[12]\b/;

/** Converts a conversation. @throws ProviderError `bad_request` for messages that Gemini cannot express. */
export function toContents({ model, messages }: Pick<ChatRequest, 'model' | 'messages'>): {
  readonly contents: readonly Content[];
  readonly systemInstruction: { readonly parts: readonly Part[] } | undefined;
} {
  const system: Part[] = [];
  const contents: Content[] = [];
  const functionNames = new Map<string, string>();
  /** The content that collects the results of one turn's calls: Gemini wants them together. */
  let results: Content | undefined;
  for (const message of messages) {
    if (message.role === 'tool') {
      if (!results) contents.push((results = { role: 'user', parts: [] }));
      results.parts.push(functionResponse(message, functionNames));
      continue;
    }
    results = undefined;
    switch (message.role) {
      case 'system':
      case 'developer':
        for (const text of texts(message.content)) if (text !== '') system.push({ text });
        break;
      case 'user':
        contents.push({ role: 'user', parts: userParts(message.content) });
        break;
      case 'assistant': {
        const parts = assistantParts(message, functionNames, !NEEDS_NO_SIGNATURE.test(model));
        // Gemini refuses content without parts.
        if (parts.length > 0) contents.push({ role: 'model', parts });
        break;
      }
      default:
        throw badRequest();
    }
  }
  if (contents.length === 0) throw badRequest();
  return { contents, systemInstruction: system.length > 0 ? { parts: system } : undefined };
}

function texts(content: unknown): readonly string[] {
  if (typeof content === 'string') return [content];
  return parsed(textContent, content).map(({ text }) => text);
}

function userParts(content: unknown): Part[] {
  if (typeof content === 'string') return [{ text: content }];
  return parsed(userContent, content).map((part) =>
    part.type === 'text' ? { text: part.text } : imagePart(part.image_url.url),
  );
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
  const unsigned = needsSignature && calls.every((call) => !call.extra_content);
  for (const [index, { id, function: fn, extra_content: extra }] of calls.entries()) {
    functionNames.set(id, fn.name);
    // Gemini signs only the first of several parallel calls.
    const made = unsigned && index === 0 ? NOT_FROM_GEMINI : undefined;
    parts.push({
      functionCall: { id, name: fn.name, args: fn.arguments === '' ? {} : args(fn.arguments) },
      thoughtSignature: extra?.google.thought_signature ?? made,
    });
  }
  return parts;
}

function args(json: string): JsonObject {
  const value = jsonObject(json);
  if (!value) throw badRequest();
  return value;
}

function functionResponse(
  { tool_call_id: id, content }: ChatMessage,
  functionNames: ReadonlyMap<string, string>,
): Part {
  const name = typeof id === 'string' ? functionNames.get(id) : undefined;
  if (name === undefined) throw badRequest();
  const result = texts(content).join('');
  return { functionResponse: { id, name, response: jsonObject(result) ?? { result } } };
}

function jsonObject(text: string): JsonObject | undefined {
  // Results are long, so text that cannot be an object is not parsed.
  const value = /^\s*\{/.test(text) ? tryParseJson(text) : undefined;
  return isObject(value) ? value : undefined;
}
