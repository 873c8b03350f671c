import { area, variable, type SettingsOf } from '../platform/environment/area.js';
import { text, textMatching, url } from '../platform/environment/types.js';

export const notificationSettings = area(
  'Notifications',
  () => ({
    telegram: {
      botToken: variable(
        'TELEGRAM_BOT_TOKEN',
        textMatching(/^\d+:[\w-]+$/, 'like 123456:abc, as BotFather gives it').optional(),
        'with the chat: operators are told there of agents in trouble',
        { secret: true },
      ),
      chatId: variable('TELEGRAM_ADMIN_CHAT_ID', text.optional(), 'where the bot tells them'),
      apiUrl: variable(
        'TELEGRAM_API_URL',
        url('http', 'https').prefault('https://api.telegram.org'),
        'where the bot API is',
      ),
    },
    discordWebhookUrl: variable(
      'DISCORD_WEBHOOK_URL',
      url('http', 'https').optional(),
      'operators are told through that webhook, too',
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
