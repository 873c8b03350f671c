import { isObject } from '../../lib/json.js';
import type { ChatBody, ChatMessage, ChatRequest, TokenUsage } from './completion.js';

/** Output bound in tokens for a request without its own. */
export const DEFAULT_MAX_OUTPUT = 16_384;

/** Largest budget for thinking of any model, in tokens. */
const MAX_BUDGET = 128_000;

/** Upper bound of tokens for one image at any provider. */
const IMAGE_TOKENS = 8_000;

/** Tokens that a model's own format adds to each message. */
const MESSAGE_TOKENS = 16;

/** Upper bound of tokens that a provider adds to the prompt if tools are present. */
const TOOLS_TOKENS = 1_000;

/**
 * Returns the maximum number of tokens that a call may use. A token is at least one byte of UTF-8 (about four
 * in practice). Content behind a URL has unknown size and counts as the route's largest context window.
 */
export function tokenBound(request: ChatBody, contextWindow: number): number {
  const input = inputBound(request);
  const most = request.messages.some(hasAddress) ? Math.max(input, contextWindow) : input;
  return most + outputBound(request) * answersOf(request);
}

function hasAddress({ content }: ChatMessage): boolean {
  return Array.isArray(content) && content.some((part) => isImage(part) && !isInside(part));
}

function isInside(part: object): boolean {
  const image: unknown = 'image_url' in part ? part.image_url : undefined;
  const url = typeof image === 'object' && image !== null && 'url' in image ? image.url : undefined;
  return typeof url === 'string' && /^data:/i.test(url);
}

export function usageEstimate(request: ChatBody, outputTokens: number): TokenUsage {
  return { inputTokens: Math.ceil(inputBound(request) / 4), outputTokens };
}

/** Highest output rate of the commonly requested models. */
const TOKENS_PER_SECOND = 100;

/** Estimates the usage of an answer without output so far, from the `performance.now()` of its request. */
export function estimateByElapsedTime(request: ChatBody, since: number): TokenUsage {
  const written = Math.ceil(((performance.now() - since) / 1_000) * TOKENS_PER_SECOND);
  return usageEstimate(request, Math.min(written, outputBound(request) * answersOf(request)));
}

/**
 * Returns the request within the most that the model writes. A request without a bound gets the one used for
 * the hold, if `isHeld`.
 */
export function withOutputBound(
  request: ChatRequest,
  {
    maxOutput = Infinity,
    isHeld,
  }: { readonly maxOutput?: number | undefined; readonly isHeld: boolean },
): ChatRequest {
  const { max_tokens: a, max_completion_tokens: b } = request;
  if (ownBound(request) === undefined) {
    return isHeld
      ? { ...request, max_tokens: Math.min(defaultOutput(request), maxOutput) }
      : request;
  }
  if (Math.max(a ?? 0, b ?? 0) <= maxOutput) return request;
  return {
    ...request,
    ...(a !== undefined && { max_tokens: Math.min(a, maxOutput) }),
    ...(b !== undefined && { max_completion_tokens: Math.min(b, maxOutput) }),
  };
}

/** Returns the output bound of a request without its own: a budget for thinking is added. */
export function defaultOutput({ thinking }: ChatBody): number {
  const budget = isObject(thinking) ? thinking.budget_tokens : undefined;
  const thought = typeof budget === 'number' && budget > 0 ? Math.min(budget, MAX_BUDGET) : 0;
  return DEFAULT_MAX_OUTPUT + Math.ceil(thought);
}

/** Returns the higher of the two bounds, since providers differ in which they honor. */
function ownBound({ max_tokens: a, max_completion_tokens: b }: ChatBody): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.max(a, b);
}

const outputBound = (request: ChatBody): number => ownBound(request) ?? defaultOutput(request);

const answersOf = ({ n }: ChatBody): number => (typeof n === 'number' && n > 1 ? n : 1);

/** Input bounds by request, since a running call needs them repeatedly. */
const reckoned = new WeakMap<ChatBody, number>();

function inputBound(request: ChatBody): number {
  const known = reckoned.get(request);
  if (known !== undefined) return known;
  const tokens = reckonInput(request);
  reckoned.set(request, tokens);
  return tokens;
}

function reckonInput({ messages, ...rest }: ChatBody): number {
  let tokens = Buffer.byteLength(JSON.stringify(rest));
  const hasTools = rest.tools !== undefined || rest.functions !== undefined;
  if (hasTools || messages.some(({ tool_calls: made }) => made !== undefined))
    tokens += TOOLS_TOKENS;
  for (const message of messages) tokens += MESSAGE_TOKENS + messageBound(message);
  return tokens;
}

function messageBound({ role: _role, content, ...rest }: ChatMessage): number {
  let tokens = Buffer.byteLength(JSON.stringify(rest));
  if (typeof content === 'string') return tokens + Buffer.byteLength(content);
  if (!Array.isArray(content)) return tokens;
  for (const part of content as readonly unknown[]) {
    tokens += isImage(part) ? IMAGE_TOKENS : Buffer.byteLength(JSON.stringify(part) ?? '');
  }
  return tokens;
}

function isImage(part: unknown): part is object {
  return typeof part === 'object' && part !== null && 'type' in part && part.type === 'image_url';
}
