import { request } from 'undici';
import * as z from 'zod';
import { tryParseJson } from '../../lib/json.js';
import { readTextUpTo } from '../../lib/read-beginning.js';
import { tokenCount, type ListedModel } from '../providers/shared/model-list.js';

/** The owner of official models in Ollama's list. */
const OWNER = 'library';

const MAX_BYTES = 1024 * 1024;

/** Maximum number of models whose details are requested; further ones have none. */
const MAX_SHOWN = 20;

const running = z.object({
  models: z.array(z.object({ name: z.string(), context_length: tokenCount })).max(1_000),
});

const shown = z.object({ capabilities: z.array(z.string()) });

export const isOllama = (list: readonly ListedModel[]): boolean =>
  list.some(({ owner }) => owner === OWNER);

/**
 * Adds details that only Ollama's own API has: the context of loaded models, and support for tools. A
 * detail that cannot be read is left out.
 */
export async function withOllamaDetails(
  baseUrl: string,
  list: readonly ListedModel[],
  signal: AbortSignal,
): Promise<readonly ListedModel[]> {
  const api = new URL('/api/', baseUrl);
  const loaded = await read(new URL('ps', api), running, signal);
  if (loaded === undefined) return list; // another server
  const details = await Promise.all(
    list
      .slice(0, MAX_SHOWN)
      .map(({ name }) => read(new URL('show', api), shown, signal, { model: name })),
  );
  const contexts = new Map(
    loaded.models.map(({ name, context_length: context }) => [name, context]),
  );
  return list.map((model, index) => ({
    ...model,
    contextWindow: model.contextWindow ?? contexts.get(model.name),
    takesTools: details[index]?.capabilities.includes('tools') ?? model.takesTools,
  }));
}

async function read<T>(
  url: URL,
  schema: z.ZodType<T>,
  signal: AbortSignal,
  input?: object,
): Promise<T | undefined> {
  try {
    const { body, statusCode } = await request(url, {
      signal,
      ...(input && { method: 'POST', body: JSON.stringify(input) }),
    });
    const text = await readTextUpTo(body, MAX_BYTES);
    return statusCode === 200 ? schema.safeParse(tryParseJson(text)).data : undefined;
  } catch {
    return undefined; // no answer in time
  }
}
