import { TextDecoder } from 'node:util';
import { Agent, request, type Dispatcher } from 'undici';
import { readPrefix } from '../../lib/read-beginning.js';
import type { ProviderName } from '../completion/provider-names.js';
import { ProviderError } from '../completion/provider-error.js';
import type { WireRequest } from '../providers/shared/adapter.js';

/** Maximum number of bytes of an error response to read: enough to find its type. */
const MAX_ERROR_BYTES = 64 * 1024;

/** Maximum number of connections to one provider. Further calls wait while their timeout runs. */
const MAX_CONNECTIONS = 1_024;
const CONNECT_TIMEOUT_MS = 10_000;

/**
 * Uses `undici` directly, because `fetch` on top of it costs four times as much. Its own timeouts are off:
 * each attempt has an AttemptClock.
 */
const dispatcher = new Agent({
  connections: MAX_CONNECTIONS,
  connect: { timeout: CONNECT_TIMEOUT_MS },
  headersTimeout: 0,
  bodyTimeout: 0,
});

export type ProviderResponse = Dispatcher.ResponseData;

export const isSuccess = ({ statusCode }: ProviderResponse): boolean =>
  statusCode >= 200 && statusCode < 300;

export function post(
  { url, headers, body }: WireRequest,
  signal: AbortSignal,
): Promise<ProviderResponse> {
  return request(url, { method: 'POST', headers, body, signal, dispatcher });
}

/** Reads a complete body. @throws ProviderError for a body that is too long or not UTF-8. */
export async function readWhole(
  name: ProviderName,
  { body, statusCode }: ProviderResponse,
  maxBytes: number,
): Promise<string> {
  const bytes = await readPrefix(body, maxBytes + 1);
  try {
    if (bytes.length <= maxBytes) return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    // Reported in the same way as a body that is too long.
  }
  throw new ProviderError(name, 'garbage', statusCode);
}

export async function readFailure({ body }: ProviderResponse): Promise<string> {
  return (await readPrefix(body, MAX_ERROR_BYTES)).toString('utf8');
}
