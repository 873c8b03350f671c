import { Readable } from 'node:stream';
import type { NotificationChannelName } from '../platform/database/models.js';
import { tryParseJson } from '../lib/json.js';
import { readTextUpTo } from '../lib/read-beginning.js';
import { unavailable } from './channel.js';

const MAX_ANSWER_BYTES = 64 * 1024;

export interface JsonAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** The parsed JSON; undefined for other content. */
  readonly body: unknown;
}

/** Posts JSON to a secret address. @throws ChannelError without a cause: `fetch` errors may quote it */
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
      // A redirect would send the secret to another server.
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMs),
    });
    const text = response.body
      ? await readTextUpTo(Readable.fromWeb(response.body), MAX_ANSWER_BYTES)
      : '';
    return { status: response.status, headers: response.headers, body: tryParseJson(text) };
  } catch {
    throw unavailable(channel, 'cannot be reached or did not answer in time');
  }
}
