import type { NotificationChannel } from './channel.js';
import { discordChannel } from './discord.js';
import type { NotificationSettings } from './settings.js';
import { telegramChannel } from './telegram.js';

/** Returns the channels that the environment configures, possibly none. */
export function configuredChannels({
  telegram,
  discordWebhookUrl,
}: NotificationSettings): NotificationChannel[] {
  return [
    ...(telegram ? [telegramChannel(telegram)] : []),
    ...(discordWebhookUrl === undefined ? [] : [discordChannel(discordWebhookUrl)]),
  ];
}
