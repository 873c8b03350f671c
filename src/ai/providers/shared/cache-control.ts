import { isObject, type JsonObject } from '../../../lib/json.js';

/** Maximum number of parts of a request that Anthropic caches; it refuses more, also behind OpenRouter. */
const MAX_MARKED = 4;

/** Returns the request with cache marks only on its last parts; the cache then includes all parts before. */
export function withinCacheBounds<T extends JsonObject>(body: T): T {
  const { tools, system, messages } = body;
  let excess = marked([tools, system, messages]) - MAX_MARKED;
  if (excess <= 0) return body;
  const reduced = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(reduced);
    if (!isObject(value)) return value;
    const content = 'content' in value ? { content: reduced(value.content) } : {};
    if (value.cache_control === undefined || excess-- <= 0) return { ...value, ...content };
    const { cache_control: _control, ...others } = value;
    return { ...others, ...content };
  };
  // Anthropic reads a request in this order.
  const within = { tools: reduced(tools), system: reduced(system), messages: reduced(messages) };
  return { ...body, ...within };
}

function marked(value: unknown): number {
  if (Array.isArray(value)) return value.reduce<number>((sum, each) => sum + marked(each), 0);
  if (!isObject(value)) return 0;
  return marked(value.content) + (value.cache_control === undefined ? 0 : 1);
}
