import { address } from '../platform/environment/address.js';
import { area, variable, type SettingsOf } from '../platform/environment/area.js';
import { text, textMatching } from '../platform/environment/types.js';

export const notificationSettings = area(
  'Notifications',
  (mode) => ({
    telegram: {
      botToken: variable(
        'TELEGRAM_BOT_TOKEN',
        textMatching(/^\d+:[\w-]+$/, 'like 123456:abc, as BotFather gives it').optional(),
        'token of the bot that notifies operators; requires `TELEGRAM_ADMIN_CHAT_ID`',
        { secret: true },
      ),
      chatId: variable(
        'TELEGRAM_ADMIN_CHAT_ID',
        text.optional(),
        "chat that receives the bot's messages",
      ),
      apiUrl: variable(
        'TELEGRAM_API_URL',
        address(mode, 'http', 'https').prefault('https://api.telegram.org'),
        'address of the bot API',
      ),
    },
    discordWebhookUrl: variable(
      'DISCORD_WEBHOOK_URL',
      address(mode, 'http', 'https').optional(),
      'Discord webhook that also notifies operators',
      { secret: true },
    ),
  }),
  ({ discordWebhookUrl, telegram: { apiUrl, botToken, chatId } }) => ({
    discordWebhookUrl,
    telegram:
      botToken === undefined || chatId === undefined ? undefined : { apiUrl, botToken, chatId },
  }),
);

export type NotificationSettings = SettingsOf<typeof notificationSettings>;
