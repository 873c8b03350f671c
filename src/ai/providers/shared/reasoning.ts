import { createHash } from 'node:crypto';
import { isObject, type JsonObject } from '../../../lib/json.js';

/** Name of Anthropic's blocks in OpenRouter's format for reasoning, `reasoning_details`. */
const FORMAT = 'anthropic-claude-v1';

/** A thinking block of Anthropic, as clients receive it and send it back. */
export interface ReasoningDetail {
  readonly type: 'reasoning.text' | 'reasoning.encrypted';
  readonly format: typeof FORMAT;
  /**
   * Begins with the model that made the block, since other models refuse the block. Clients send back no
   * field that OpenRouter's format lacks, and keep one detail of each id.
   */
  readonly id: string;
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
  const content = block.type === 'thinking' ? block.signature : block.data;
  const hash = createHash('sha256').update(content).digest('base64url').slice(0, 12);
  const id = `${beginOfId(model, index)}${hash}`;
  const common = { format: FORMAT, id, index } as const;
  return block.type === 'thinking'
    ? { type: 'reasoning.text', ...common, text: block.thinking, signature: block.signature }
    : { type: 'reasoning.encrypted', ...common, data: block.data };
}

const OF_ANTHROPIC = 'anthropic/';

const beginOfId = (model: string, index: number): string => `${OF_ANTHROPIC}${model}/${index}/`;

/** Reports whether the platform received a detail from Anthropic itself. */
export function isFromAnthropic(detail: unknown): detail is JsonObject {
  if (!isObject(detail) || detail.format !== FORMAT) return false;
  return typeof detail.id === 'string' && detail.id.startsWith(OF_ANTHROPIC);
}

/**
 * Returns the thinking blocks with which a model began an answer. Anthropic refuses changed blocks, so an
 * incomplete list yields none, nor do blocks of another model or blocks that followed a text.
 */
export function thinkingBlocks(details: unknown, model: string): ThinkingBlock[] {
  if (!Array.isArray(details)) return [];
  const blocks: ThinkingBlock[] = [];
  for (const detail of details as readonly unknown[]) {
    const isNext = isFromAnthropic(detail) && isBlockOf(detail, model, blocks.length);
    const block = isNext ? toBlock(detail) : undefined;
    if (!block) return [];
    blocks.push(block);
  }
  return blocks;
}

const isBlockOf = ({ id }: JsonObject, model: string, index: number): boolean =>
  typeof id === 'string' && id.startsWith(beginOfId(model, index));

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

/**
 * Google's marker for a call that Gemini did not make: Gemini 3 and later refuse a call without a signature.
 */
export const NOT_FROM_GEMINI = 'skip_thought_signature_validator';

/** Name of Gemini's signatures in OpenRouter's format; the id is that of the signed call. */
const SIGNATURE_FORMAT = 'google-gemini-v1';

/** Returns the details of an answer with calls, with the marker in place of a missing signature of Gemini. */
export function withGeminiSignature(details: unknown, [first]: readonly unknown[]): unknown {
  const known: readonly unknown[] = Array.isArray(details) ? details : [];
  const isSigned = known.some(
    (each) =>
      isObject(each) && each.format === SIGNATURE_FORMAT && each.type === 'reasoning.encrypted',
  );
  if (isSigned || !isObject(first)) return details;
  const marker = { type: 'reasoning.encrypted', data: NOT_FROM_GEMINI, id: first.id };
  return [...known, { ...marker, format: SIGNATURE_FORMAT, index: known.length }];
}
