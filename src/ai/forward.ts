import { BadGatewayError, TooManyRequestsError } from '../errors.js';
import type { Provider } from './provider.js';

/** Milliseconds until a provider has begun to answer, and for the whole of its answer. */
const FIRST_BYTE_TIMEOUT_MS = 60_000;
const ANSWER_TIMEOUT_MS = 10 * 60_000;

/**
 * Sends a chat completion to the provider as it came, but for the model's name, and hands back what
 * the provider answers, streaming if it streams.
 *
 * @param firstByteTimeoutMs for tests.
 * @throws TooManyRequestsError when the provider limits, BadGatewayError when it fails otherwise.
 */
export async function forwardCompletion(
  provider: Provider,
  body: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
  firstByteTimeoutMs = FIRST_BYTE_TIMEOUT_MS,
): Promise<Response> {
  const begun = new AbortController();
  const timer = setTimeout(() => begun.abort(), firstByteTimeoutMs);
  let response: Response;
  try {
    response = await fetch(`${provider.baseUrl}/chat/completions`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(provider.apiKey !== undefined && { authorization: `Bearer ${provider.apiKey}` }),
      },
      body: JSON.stringify(body),
      signal: AbortSignal.any([signal, begun.signal, AbortSignal.timeout(ANSWER_TIMEOUT_MS)]),
    });
  } catch (error) {
    if (signal.aborted) throw error;
    throw new BadGatewayError(`The AI provider ${provider.name} cannot be reached`, {
      cause: error,
    });
  } finally {
    clearTimeout(timer);
  }
  if (response.ok && response.body) return response;
  // What a provider says of a failure can quote the key or the prompt: only its status is told.
  await response.body?.cancel();
  const said = `The AI provider ${provider.name} answered with ${response.status}`;
  throw response.status === 429 ? new TooManyRequestsError(said) : new BadGatewayError(said);
}
