import type { NotificationChannelName } from '../database/models.js';
import { ChannelUnavailableError } from './channel.js';

/** An answer that is longer is not one of these services'. */
const MAX_ANSWER_BYTES = 64 * 1024;

export interface JsonAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** Undefined when it is not JSON. */
  readonly body: unknown;
}

/**
 * Posts JSON to an address that is itself a secret.
 *
 * @throws ChannelUnavailableError without a cause: what `fetch` throws may quote the address.
 */
export async function postJson(
  channel: NotificationChannelName,
  address: string,
  body: unknown,
  timeoutMs: number,
): Promise<JsonAnswer> {
  try {
    const response = await fetch(address, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      // A redirect would carry the secret elsewhere.
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMs),
    });
    const text = await readBounded(response);
    return { status: response.status, headers: response.headers, body: parse(text) };
  } catch {
    throw new ChannelUnavailableError(channel, 'cannot be reached or did not answer in time');
  }
}

async function readBounded(response: Response): Promise<string> {
  let text = '';
  if (!response.body) return text;
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
    text += piece;
    if (text.length > MAX_ANSWER_BYTES) throw new RangeError('the answer is too long');
  }
  return text;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
