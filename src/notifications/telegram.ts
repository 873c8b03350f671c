import { z } from 'zod';
import {
  ChannelLimitedError,
  ChannelUnavailableError,
  MessageRefusedError,
  type NotificationChannel,
} from './channel.js';
import { truncated } from './message.js';
import { postJson } from './post-json.js';

/** Telegram's own limit of one message, in UTF-16 units. */
const MAX_TEXT_LENGTH = 4096;

const SEND_TIMEOUT_MS = 10_000;

/** When Telegram limits and does not say for how long. */
const DEFAULT_RETRY_AFTER_S = 30;

export interface TelegramSettings {
  readonly apiUrl: string;
  readonly botToken: string;
  readonly chatId: string;
}

const answer = z.union([
  z.object({ ok: z.literal(true) }),
  z.object({
    ok: z.literal(false),
    error_code: z.number(),
    parameters: z.object({ retry_after: z.number().min(0).optional() }).optional(),
  }),
]);

/**
 * A chat of a Telegram bot. Without a parse mode the text is shown as it is.
 *
 * @param timeoutMs for tests.
 */
export function telegramChannel(
  { apiUrl, botToken, chatId }: TelegramSettings,
  timeoutMs = SEND_TIMEOUT_MS,
): NotificationChannel {
  return {
    name: 'telegram',
    async send(text) {
      const { status, body } = await postJson(
        'telegram',
        `${apiUrl}/bot${botToken}/sendMessage`,
        { chat_id: chatId, text: truncated(text, MAX_TEXT_LENGTH) },
        timeoutMs,
      );
      const read = answer.safeParse(body);
      if (read.success && read.data.ok) return;
      const code = read.success && !read.data.ok ? read.data.error_code : status;
      if (code === 429) {
        const parameters = read.success && !read.data.ok ? read.data.parameters : undefined;
        const seconds = parameters?.retry_after ?? DEFAULT_RETRY_AFTER_S;
        throw new ChannelLimitedError('telegram', seconds * 1_000);
      }
      if (code >= 400 && code < 500) throw new MessageRefusedError('telegram', code);
      throw new ChannelUnavailableError('telegram', `answered with ${code}`);
    },
  };
}
