import type { Config } from '../config.js';
import type { NotificationChannel } from './channel.js';
import { discordChannel } from './discord.js';
import { telegramChannel } from './telegram.js';

/** The channels that the environment names; none is fine. */
export function configuredChannels({
  telegram,
  discordWebhookUrl,
}: Pick<Config, 'telegram' | 'discordWebhookUrl'>): NotificationChannel[] {
  return [
    ...(telegram ? [telegramChannel(telegram)] : []),
    ...(discordWebhookUrl === undefined ? [] : [discordChannel(discordWebhookUrl)]),
  ];
}
