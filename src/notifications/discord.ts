import * as z from 'zod';
import { retryAfterMs } from '../lib/retry-after.js';
import { refusal, type NotificationChannel } from './channel.js';
import { truncated } from './message.js';
import { postJson } from './post-json.js';

/** Discord's own limit of one message. */
const MAX_CONTENT_LENGTH = 2000;

/** No preview of anything that is linked. */
const SUPPRESS_EMBEDS = 4;

const SEND_TIMEOUT_MS = 10_000;

/** When Discord limits and does not say for how long. */
const DEFAULT_RETRY_AFTER_MS = 5_000;

const limited = z.object({ retry_after: z.number().min(0) });

/**
 * A Discord webhook. Waits until the message is stored, so that a 2xx means that it was.
 *
 * @param webhookUrl a secret: who knows it may post.
 * @param timeoutMs for tests.
 */
export function discordChannel(
  webhookUrl: string,
  timeoutMs = SEND_TIMEOUT_MS,
): NotificationChannel {
  const address = new URL(webhookUrl);
  address.searchParams.set('wait', 'true');
  return {
    name: 'discord',
    async send(text) {
      const content = truncated(asPlainText(text), MAX_CONTENT_LENGTH);
      const { status, headers, body } = await postJson(
        'discord',
        address.href,
        // Nobody is called by a name that somebody gave to an agent.
        { content, allowed_mentions: { parse: [] }, flags: SUPPRESS_EMBEDS },
        timeoutMs,
      );
      if (status >= 200 && status < 300) return;
      throw refusal('discord', status, waitOf(headers, body));
    },
  };
}

/** The body's is to the millisecond; the header is all that a proxy in front of Discord sends. */
function waitOf(headers: Headers, body: unknown): number {
  const { data } = limited.safeParse(body);
  return data ? data.retry_after * 1_000 : (retryAfterMs(headers) ?? DEFAULT_RETRY_AFTER_MS);
}

/** Discord reads Markdown, in which a name could become a link, as could an address by itself. */
function asPlainText(text: string): string {
  return text.replace(/[\\*_~`|<>[\]():]/g, '\\$&');
}
