import type { ChatBody, ChatMessage, ChatRequest, TokenUsage } from './completion.js';

/** What an answer may be long where the request does not say, in tokens. */
export const DEFAULT_MAX_OUTPUT = 16_384;

/** No provider counts more for one image. */
const IMAGE_TOKENS = 8_000;

/** What surrounds each message in a model's own format. */
const MESSAGE_TOKENS = 16;

/** More than what any provider says to its model where it may call tools. */
const TOOLS_TOKENS = 1_000;

/**
 * What a call may use at most. A token is at least one byte of UTF-8, so that text never has more
 * tokens than bytes; in fact it has about a fourth. What is behind an address nobody can tell but
 * whoever reads it: then it is all that the model can take in.
 *
 * @param contextWindow of the model that takes in most of those who may be asked.
 */
export function tokenBound(request: ChatBody, contextWindow: number): number {
  const input = inputBound(request);
  const most = request.messages.some(hasAddress) ? Math.max(input, contextWindow) : input;
  return most + outputBound(request) * answersOf(request);
}

function hasAddress({ content }: ChatMessage): boolean {
  return Array.isArray(content) && content.some((part) => isImage(part) && !isInside(part));
}

/** Whether an image is in the request itself. */
function isInside(part: object): boolean {
  const image: unknown = 'image_url' in part ? part.image_url : undefined;
  const url = typeof image === 'object' && image !== null && 'url' in image ? image.url : undefined;
  return typeof url === 'string' && /^data:/i.test(url);
}

/** What to reckon with where a provider does not say what was used. */
export function usageEstimate(request: ChatBody, outputTokens: number): TokenUsage {
  return { inputTokens: Math.ceil(inputBound(request) / 4), outputTokens };
}

/** No model that is asked for much writes more in a second. */
const TOKENS_PER_SECOND = 100;

/**
 * What to reckon with where nothing of an answer has come: it was being written all the same.
 *
 * @param since of `performance.now()`: when the provider was asked.
 */
export function unseenUsage(request: ChatBody, since: number): TokenUsage {
  const written = Math.ceil(((performance.now() - since) / 1_000) * TOKENS_PER_SECOND);
  return usageEstimate(request, Math.min(written, outputBound(request) * answersOf(request)));
}

/** The request with the bound that was held for it, where it has none of its own. */
export function withOutputBound(request: ChatRequest, maxOutput = DEFAULT_MAX_OUTPUT): ChatRequest {
  if (ownBound(request) !== undefined) return request;
  return { ...request, max_tokens: Math.min(DEFAULT_MAX_OUTPUT, maxOutput) };
}

/** Of two bounds the higher: which of them a provider heeds is its own matter. */
function ownBound({ max_tokens: a, max_completion_tokens: b }: ChatBody): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.max(a, b);
}

const outputBound = (request: ChatBody): number => ownBound(request) ?? DEFAULT_MAX_OUTPUT;

const answersOf = ({ n }: ChatBody): number => (typeof n === 'number' && n > 1 ? n : 1);

/** Of requests that are there: what is under way is asked for again and again. */
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
  if (rest.tools !== undefined || rest.functions !== undefined) tokens += TOOLS_TOKENS;
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
