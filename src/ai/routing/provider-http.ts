import { TextDecoder } from 'node:util';
import { Agent, request, type Dispatcher } from 'undici';
import { readBeginning } from '../../lib/read-beginning.js';
import type { ProviderName } from '../completion/provider-names.js';
import { ProviderError } from '../completion/provider-error.js';
import type { WireRequest } from '../providers/shared/adapter.js';

/** What is read of an error: enough for its type. */
const MAX_ERROR_BYTES = 64 * 1024;

/** To one provider at a time. Beyond, a call waits for one that ends, and its time runs. */
const MAX_CONNECTIONS = 1_024;
const CONNECT_TIMEOUT_MS = 10_000;

/**
 * `undici` itself, because the `fetch` that is built on it costs four times as much. Its own
 * timeouts are off: an attempt has its clock.
 */
const dispatcher = new Agent({
  connections: MAX_CONNECTIONS,
  connect: { timeout: CONNECT_TIMEOUT_MS },
  headersTimeout: 0,
  bodyTimeout: 0,
});

/** A provider's answer, whose body is still to be read. */
export type ProviderResponse = Dispatcher.ResponseData;

export const isSuccess = ({ statusCode }: ProviderResponse): boolean =>
  statusCode >= 200 && statusCode < 300;

export function post(
  { url, headers, body }: WireRequest,
  signal: AbortSignal,
): Promise<ProviderResponse> {
  return request(url, { method: 'POST', headers, body, signal, dispatcher });
}

/** @throws ProviderError for a body that is longer, or is not UTF-8. */
export async function readWhole(
  name: ProviderName,
  { body, statusCode }: ProviderResponse,
  maxBytes: number,
): Promise<string> {
  const bytes = await readBeginning(body, maxBytes + 1);
  try {
    if (bytes.length <= maxBytes) return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    // Told like one that is too long.
  }
  throw new ProviderError(name, 'garbage', statusCode);
}

/** The beginning of what is said of a failure. */
export async function readFailure({ body }: ProviderResponse): Promise<string> {
  return (await readBeginning(body, MAX_ERROR_BYTES)).toString('utf8');
}
