import type { ChatMessage } from '../../completion/completion.js';
import { unsupported } from './errors.js';
import { imageSource } from './image.js';
import { isObject, tryParseJson, type JsonObject } from '../../../lib/json.js';

type Block = JsonObject;

interface Turn {
  readonly role: 'user' | 'assistant';
  readonly content: string | Block[];
}

export interface Conversation {
  readonly system: readonly Block[];
  readonly messages: readonly Turn[];
}

/**
 * Converts roles and contents: at Anthropic system messages are separate and tool results belong to the user.
 * @throws ProviderError `bad_request` for content that Anthropic's format cannot express.
 */
export function toConversation(messages: readonly ChatMessage[]): Conversation {
  const system: Block[] = [];
  const turns: Turn[] = [];
  /** Anthropic wants the results of one round of tool calls in a single turn. */
  let results: Block[] | undefined;
  for (const message of messages) {
    if (message.role === 'tool') {
      if (!results) turns.push({ role: 'user', content: (results = []) });
      results.push(toolResult(message));
      continue;
    }
    results = undefined;
    switch (message.role) {
      case 'system':
      case 'developer':
        system.push(...blocks(message.content));
        break;
      case 'user':
        turns.push({ role: 'user', content: textOrBlocks(message.content) });
        break;
      case 'assistant': {
        const content = [...blocks(message.content), ...toolUses(message.tool_calls)];
        // An answer may have been empty; Anthropic refuses an empty turn.
        if (content.length > 0) turns.push({ role: 'assistant', content });
        break;
      }
      default:
        throw unsupported();
    }
  }
  return { system, messages: turns };
}

function textOrBlocks(content: unknown): string | Block[] {
  return typeof content === 'string' ? content : blocks(content);
}

function blocks(content: unknown): Block[] {
  if (content === undefined || content === null || content === '') return [];
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  if (!Array.isArray(content)) throw unsupported();
  // Anthropic refuses an empty text.
  return content.filter((part: unknown) => !isEmptyText(part)).map(toBlock);
}

const isEmptyText = (part: unknown): boolean =>
  isObject(part) && part.type === 'text' && part.text === '';

function toBlock(part: unknown): Block {
  if (!isObject(part)) throw unsupported();
  switch (part.type) {
    case 'image_url': {
      const { image_url: image, ...others } = part;
      return { ...others, type: 'image', source: imageSource(image) };
    }
    case 'refusal':
      return { type: 'text', text: part.refusal };
    case 'text':
      return part;
    default:
      throw unsupported();
  }
}

function toolUses(calls: unknown): Block[] {
  if (calls === undefined || calls === null) return [];
  if (!Array.isArray(calls)) throw unsupported();
  return calls.map((call: unknown) => {
    if (!isObject(call) || !isObject(call.function)) throw unsupported();
    const { name, arguments: input } = call.function;
    return { type: 'tool_use', id: toolUseId(call.id), name, input: toInput(input) };
  });
}

/** Parses tool arguments; some clients send an empty text for a tool without parameters. */
function toInput(argumentsText: unknown): JsonObject {
  if (argumentsText === '') return {};
  const input = typeof argumentsText === 'string' ? tryParseJson(argumentsText) : undefined;
  if (!isObject(input)) throw unsupported();
  return input;
}

function toolResult({ tool_call_id: id, content }: ChatMessage): Block {
  return { type: 'tool_result', tool_use_id: toolUseId(id), content: textOrBlocks(content) };
}

/** Returns a valid tool call id; other providers' ids can contain characters that Anthropic refuses. */
function toolUseId(id: unknown): string {
  if (typeof id !== 'string' || id === '') throw unsupported();
  return id.replace(/[^a-zA-Z0-9_-]/g, '_');
}
