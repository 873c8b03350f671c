import { isObject, type JsonObject } from '../../../lib/json.js';

/** Name of Anthropic's blocks in OpenRouter's format for reasoning, `reasoning_details`. */
const FORMAT = 'anthropic-claude-v1';

/** A thinking block of Anthropic, as clients receive it and give it back. */
export interface ReasoningDetail {
  readonly type: 'reasoning.text' | 'reasoning.encrypted';
  readonly format: typeof FORMAT;
  /** The model that made the block; other models refuse it. */
  readonly model: string;
  /** Position of the block in the answer. */
  readonly index: number;
  readonly text?: string;
  readonly signature?: string;
  readonly data?: string;
}

export type ThinkingBlock =
  | { readonly type: 'thinking'; readonly thinking: string; readonly signature: string }
  | { readonly type: 'redacted_thinking'; readonly data: string };

export function reasoningDetail(
  model: string,
  index: number,
  block: ThinkingBlock,
): ReasoningDetail {
  const common = { format: FORMAT, model, index } as const;
  return block.type === 'thinking'
    ? { type: 'reasoning.text', ...common, text: block.thinking, signature: block.signature }
    : { type: 'reasoning.encrypted', ...common, data: block.data };
}

/** Reports whether the platform received a detail from Anthropic itself. */
export function isFromAnthropic(detail: unknown): detail is JsonObject {
  return isObject(detail) && detail.format === FORMAT && typeof detail.model === 'string';
}

/**
 * Returns the thinking blocks with which a model began an answer. Anthropic refuses changed blocks, so an
 * incomplete list yields none, nor do blocks of another model or blocks that followed a text.
 */
export function thinkingBlocks(details: unknown, model: string): ThinkingBlock[] {
  if (!Array.isArray(details)) return [];
  const blocks: ThinkingBlock[] = [];
  for (const detail of details as readonly unknown[]) {
    if (!isFromAnthropic(detail) || detail.model !== model) return [];
    const block = detail.index === blocks.length ? toBlock(detail) : undefined;
    if (!block) return [];
    blocks.push(block);
  }
  return blocks;
}

function toBlock({ type, text, signature, data }: JsonObject): ThinkingBlock | undefined {
  if (type === 'reasoning.encrypted') {
    return typeof data === 'string' && data !== ''
      ? { type: 'redacted_thinking', data }
      : undefined;
  }
  if (typeof text !== 'string' || typeof signature !== 'string' || signature === '')
    return undefined;
  return { type: 'thinking', thinking: text, signature };
}
