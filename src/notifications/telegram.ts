import * as z from 'zod';
import { refusal, type NotificationChannel } from './channel.js';
import { truncated } from './message.js';
import { postJson } from './post-json.js';
import type { NotificationSettings } from './settings.js';

/** Telegram's limit for one message, in UTF-16 units. */
const MAX_TEXT_LENGTH = 4096;

const SEND_TIMEOUT_MS = 10_000;

/** Seconds to wait after a rate limit without a duration. */
const DEFAULT_RETRY_AFTER_S = 30;

const answer = z.union([
  z.object({ ok: z.literal(true) }),
  z.object({
    ok: z.literal(false),
    error_code: z.number(),
    parameters: z.object({ retry_after: z.number().min(0).optional() }).optional(),
  }),
]);

/** Makes a Telegram channel. One preformatted block keeps users' texts from becoming links. */
export function telegramChannel(
  { apiUrl, botToken, chatId }: NonNullable<NotificationSettings['telegram']>,
  timeoutMs = SEND_TIMEOUT_MS,
): NotificationChannel {
  return {
    name: 'telegram',
    async send(text) {
      const shown = truncated(text, MAX_TEXT_LENGTH);
      const { status, body } = await postJson(
        'telegram',
        `${apiUrl}/bot${botToken}/sendMessage`,
        {
          chat_id: chatId,
          text: shown,
          entities: [{ type: 'pre', offset: 0, length: shown.length }],
          link_preview_options: { is_disabled: true },
        },
        timeoutMs,
      );
      const { data } = answer.safeParse(body);
      if (data?.ok) return;
      const seconds = data?.parameters?.retry_after ?? DEFAULT_RETRY_AFTER_S;
      throw refusal('telegram', data?.error_code ?? status, seconds * 1_000);
    },
  };
}
