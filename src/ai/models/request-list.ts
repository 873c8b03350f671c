import { request } from 'undici';
import { tryParseJson } from '../../lib/json.js';
import { readTextUpTo } from '../../lib/read-beginning.js';
import type { ProviderConfig, ProviderName } from '../completion/provider-names.js';
import { isOllama, withOllamaDetails } from './ollama.js';
import { adapterOf } from '../providers/adapters.js';
import type { WireQuestion } from '../providers/shared/adapter.js';
import type { ListedModel } from '../providers/shared/model-list.js';

const TIMEOUT_MS = 2_000;
const MAX_BYTES = 1024 * 1024;

/**
 * The result of a request for a provider's models:
 * - `answers`: with its list if it sent one.
 * - `key_refused`: the provider does not accept the key.
 * - `silent`: no answer in time, or an internal error.
 */
export interface ListAnswer {
  readonly state: 'answers' | 'key_refused' | 'silent';
  readonly list?: readonly ListedModel[] | undefined;
}

/** Requests a provider's list of models, and the endpoint that shows its key where the list is public. */
export async function requestList(
  name: ProviderName,
  config: ProviderConfig,
  timeoutMs = TIMEOUT_MS,
): Promise<ListAnswer> {
  const adapter = adapterOf(name);
  const keyed = config.apiKey === undefined ? undefined : adapter.keyRequest?.(config);
  const signal = AbortSignal.timeout(timeoutMs);
  const [listed, key] = await Promise.all([
    fetchList(name, adapter.listRequest(config), signal),
    keyed && fetchList(name, keyed, signal),
  ]);
  const { list } = listed;
  const details =
    list && isOllama(list) ? await withOllamaDetails(config.baseUrl, list, signal) : list;
  return { state: key?.state === 'key_refused' ? key.state : listed.state, list: details };
}

async function fetchList(
  name: ProviderName,
  { url, headers }: WireQuestion,
  signal: AbortSignal,
): Promise<ListAnswer> {
  const adapter = adapterOf(name);
  try {
    const { statusCode: status, body } = await request(url, { headers, signal });
    const text = await readTextUpTo(body, MAX_BYTES);
    if (status >= 200 && status < 300) {
      return { state: 'answers', list: adapter.readList(tryParseJson(text)) };
    }
    if (status < 400) return { state: 'answers' }; // a redirect
    const { failure } = adapter.readError(status, new Headers(), text);
    if (failure === 'bad_key') return { state: 'key_refused' };
    return { state: status < 500 ? 'answers' : 'silent' };
  } catch {
    return { state: 'silent' }; // an unreachable provider is a valid result
  }
}
