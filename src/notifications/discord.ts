import * as z from 'zod';
import { retryAfterMs } from '../lib/retry-after.js';
import { refusal, type NotificationChannel } from './channel.js';
import { truncated } from './message.js';
import { postJson } from './post-json.js';

/** Discord's limit for one message. */
const MAX_CONTENT_LENGTH = 2000;

/** The message flag that disables link previews. */
const SUPPRESS_EMBEDS = 4;

const SEND_TIMEOUT_MS = 10_000;

/** Milliseconds to wait after a rate limit without a duration. */
const DEFAULT_RETRY_AFTER_MS = 5_000;

const limited = z.object({ retry_after: z.number().min(0) });

/**
 * Makes a channel for a Discord webhook. Waits until the message is stored, so that a 2xx confirms delivery.
 * @param webhookUrl a secret: anyone with this URL can post.
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
        // Mentions are disabled, because an agent's name could contain one.
        { content, allowed_mentions: { parse: [] }, flags: SUPPRESS_EMBEDS },
        timeoutMs,
      );
      if (status >= 200 && status < 300) return;
      throw refusal('discord', status, waitOf(headers, body));
    },
  };
}

/** Returns the wait in milliseconds: exact in Discord's body, missing there behind a proxy. */
function waitOf(headers: Headers, body: unknown): number {
  const { data } = limited.safeParse(body);
  return data ? data.retry_after * 1_000 : (retryAfterMs(headers) ?? DEFAULT_RETRY_AFTER_MS);
}

/** Escapes Markdown, because a name or an address could become a link in Discord. */
function asPlainText(text: string): string {
  return text.replace(/[\\*_~`|<>[\]():]/g, '\\$&');
}
