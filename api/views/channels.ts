import * as z from 'zod';
import { fitsEnvironmentFile } from '../../src/docker/containers/environment-file.js';
import {
  CHANNEL_NAMES,
  CHANNEL_TOKENS,
  type ChannelName,
} from '../../src/docker/containers/openclaw-channels.js';

const token = (form: RegExp, described: string) =>
  z
    .string()
    .max(512)
    .regex(form, { error: `the token must be ${described}` })
    .refine(fitsEnvironmentFile, { error: 'the token must leave one kind of quotes unused' });

/** Tokens of the channels of a new agent, for both listeners. */
export const channelsBody = z.strictObject(
  {
    telegram: z.strictObject({ botToken: token(/^\d+:[!-~]+$/, '<digits>:<text>') }).optional(),
    discord: z.strictObject({ token: token(/^[!-~]+$/, 'text without blanks') }).optional(),
    slack: z
      .strictObject({
        botToken: token(/^xoxb-[!-~]+$/, 'xoxb-<text>'),
        appToken: token(/^xapp-[!-~]+$/, 'xapp-<text>'),
      })
      .optional(),
  },
  { error: ({ code }) => (code === 'unrecognized_keys' ? UNKNOWN : undefined) },
);

const UNKNOWN = `channels must be among ${CHANNEL_NAMES.join(', ')}`;

export type Channels = z.infer<typeof channelsBody>;

/** Returns the channels that a body sets up. */
export const channelNames = (channels: Channels): ChannelName[] =>
  CHANNEL_NAMES.filter((name) => channels[name] !== undefined);

/** Returns the tokens by the names of the credentials that they become. */
export function tokensOf(channels: Channels): Record<string, string> {
  const { discord, slack, telegram } = channels;
  return {
    ...(telegram && { [CHANNEL_TOKENS.telegram.botToken]: telegram.botToken }),
    ...(discord && { [CHANNEL_TOKENS.discord.token]: discord.token }),
    ...(slack && {
      [CHANNEL_TOKENS.slack.botToken]: slack.botToken,
      [CHANNEL_TOKENS.slack.appToken]: slack.appToken,
    }),
  };
}

export const channelState = z
  .strictObject({
    name: z.string().meta({ examples: ['telegram'] }),
    ok: z.boolean().nullable(),
    reason: z
      .string()
      .nullable()
      .meta({ examples: ['The agent is not running'] }),
  })
  .meta({ id: 'AgentChannel' });
