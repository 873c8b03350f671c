import type { ChatMessage, ChatRequest } from '../../completion/completion.js';
import { unsupported } from './errors.js';
import { imageSource, isTaken } from './image.js';
import { isObject, type JsonObject } from '../../../lib/json.js';
import {
  beginOfTurn,
  CONTINUE,
  isBlank,
  isLenient,
  NO_TEXT,
  withReadImages,
} from '../shared/left-out.js';
import { withJsonAsked } from '../shared/json-answer.js';
import { thinkingBlocks } from '../shared/reasoning.js';
import { parseArguments, withToolCalls } from '../shared/tool-calls.js';
import { takesPrefill } from './models.js';

type Block = JsonObject;

interface Turn {
  readonly role: 'user' | 'assistant';
  readonly content: string | Block[];
}

export interface Conversation {
  readonly system: readonly Block[];
  readonly messages: readonly Turn[];
}

/** Characters that Anthropic refuses in the id of a tool call. */
const REFUSED_IN_IDS = /[^a-zA-Z0-9_-]/g;

/**
 * Converts roles and contents: at Anthropic system messages are separate and tool results belong to the user.
 * Blank texts, which Anthropic refuses, are left out.
 * @throws ProviderError `bad_request` for content that Anthropic's format cannot express.
 */
export function toConversation(request: ChatRequest, thinks: boolean): Conversation {
  const { model } = request;
  const messages = withToolCalls(withJsonAsked(request), { refusedInIds: REFUSED_IN_IDS });
  const current = beginOfTurn(messages);
  const system: Block[] = [];
  const turns: Turn[] = [];
  /** Anthropic requires the results of one round of tool calls in a single turn. */
  let results: Block[] | undefined;
  for (const [at, message] of messages.entries()) {
    const content = isLenient(message, at, current)
      ? withReadImages(message.content, isTaken)
      : message.content;
    if (message.role === 'tool') {
      if (!results) turns.push({ role: 'user', content: (results = []) });
      results.push(toolResult(message, content));
      continue;
    }
    results = undefined;
    switch (message.role) {
      case 'system':
      case 'developer':
        system.push(...blocks(content));
        break;
      case 'user':
        turns.push({ role: 'user', content: textOrBlocks(content) ?? NO_TEXT });
        break;
      case 'assistant': {
        // Anthropic accepts thinking only at the beginning of a turn.
        const begins = turns.at(-1)?.role !== 'assistant';
        const thinking = thinks && begins ? thinkingBlocks(message.reasoning_details, model) : [];
        const said = [...blocks(content), ...toolUses(message.tool_calls)];
        // An answer may have been empty; Anthropic refuses an empty turn.
        if (said.length > 0) turns.push({ role: 'assistant', content: [...thinking, ...said] });
        break;
      }
      default:
        throw unsupported();
    }
  }
  return { system, messages: withUsersTurns(turns, model) };
}

export const hasThinking = ({ content }: Turn): boolean =>
  Array.isArray(content) && content.some(isThinking);

/** Reports whether a budget is allowed: the last answer is complete, and begins with thinking if it calls tools. */
export function continuesThinking({ messages }: Conversation): boolean {
  const last = messages.findLastIndex(({ role }) => role === 'assistant');
  // A model that thinks does not continue an answer that was begun for it.
  if (last >= 0 && last === messages.length - 1) return false;
  const begin = messages.findLastIndex(({ role }, at) => at < last && role !== 'assistant') + 1;
  // Anthropic reads neighbouring turns of one role as one.
  const blocks = messages
    .slice(begin, last + 1)
    .flatMap(({ content }) => (typeof content === 'string' ? [] : content));
  const calls = blocks.some(({ type }) => type === 'tool_use');
  return !calls || isThinking(blocks[0]);
}

const isThinking = (block: Block | undefined): boolean =>
  block?.type === 'thinking' || block?.type === 'redacted_thinking';

/** Adds the user's turns that Anthropic requires: before the first answer, and after the last one. */
function withUsersTurns(turns: readonly Turn[], model: string): readonly Turn[] {
  const [first] = turns;
  const last = turns.at(-1);
  const begun: readonly Turn[] =
    first?.role === 'user' ? turns : [{ role: 'user', content: NO_TEXT }, ...turns];
  if (last?.role !== 'assistant') return begun;
  if (!takesPrefill(model)) return [...begun, { role: 'user', content: CONTINUE }];
  return [...begun.slice(0, -1), { ...last, content: withoutFinalSpace(last.content) }];
}

/** Removes white space at the end of a begun answer, which Anthropic refuses. */
function withoutFinalSpace(content: Turn['content']): Turn['content'] {
  if (typeof content === 'string') return content.trimEnd();
  return content.map((block, at) =>
    at === content.length - 1 && typeof block.text === 'string'
      ? { ...block, text: block.text.trimEnd() }
      : block,
  );
}

/** Returns undefined for content without any. */
function textOrBlocks(content: unknown): string | Block[] | undefined {
  if (typeof content === 'string') return isBlank(content) ? undefined : content;
  const given = blocks(content);
  return given.length > 0 ? given : undefined;
}

function blocks(content: unknown): Block[] {
  if (content === undefined || content === null || isBlank(content)) return [];
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  if (!Array.isArray(content)) throw unsupported();
  return content.filter((part: unknown) => !isBlankText(part)).map(toBlock);
}

const isBlankText = (part: unknown): boolean =>
  isObject(part) && part.type === 'text' && isBlank(part.text);

function toBlock(part: unknown): Block {
  if (!isObject(part)) throw unsupported();
  switch (part.type) {
    case 'image_url': {
      const { image_url: image, ...others } = part;
      return { ...others, type: 'image', source: imageSource(image) };
    }
    case 'refusal':
      return { type: 'text', text: isBlank(part.refusal) ? NO_TEXT : part.refusal };
    case 'text':
      return part;
    default:
      throw unsupported();
  }
}

function toolUses(calls: unknown): Block[] {
  if (calls === undefined) return [];
  if (!Array.isArray(calls)) throw unsupported();
  return calls.map((call: unknown) => {
    if (!isObject(call) || !isObject(call.function)) throw unsupported();
    const { name, arguments: json } = call.function;
    return { type: 'tool_use', id: call.id, name, input: parseArguments(json) };
  });
}

function toolResult({ tool_call_id: id }: ChatMessage, content: unknown): Block {
  if (typeof id !== 'string' || id === '') throw unsupported();
  const result = textOrBlocks(content);
  return { type: 'tool_result', tool_use_id: id, ...(result !== undefined && { content: result }) };
}
