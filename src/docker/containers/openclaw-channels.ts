import { isObject, type JsonObject } from '../../lib/json.js';

/** The channels that the platform sets up: OpenClaw's setting of each token, and its variable. */
export const CHANNEL_TOKENS = {
  telegram: { botToken: 'TELEGRAM_BOT_TOKEN' },
  discord: { token: 'DISCORD_BOT_TOKEN' },
  slack: { botToken: 'SLACK_BOT_TOKEN', appToken: 'SLACK_APP_TOKEN' },
} as const satisfies Readonly<Record<string, Readonly<Record<string, string>>>>;

export type ChannelName = keyof typeof CHANNEL_TOKENS;

export const CHANNEL_NAMES = ['telegram', 'discord', 'slack'] as const satisfies ChannelName[];

/**
 * Channels on which the runtime of the agents' image reports. The package of Discord works only where OpenClaw
 * itself installed it.
 */
export const REPORTED_CHANNELS: ReadonlySet<string> = new Set<ChannelName>(['telegram', 'slack']);

/** Sections of OpenClaw's `channels` that are no channel. */
const SHARED = new Set(['defaults', 'modelByChannel']);

/** Packages of channels in the agents' image, which OpenClaw does not contain itself. */
const PACKAGES: Readonly<Partial<Record<ChannelName, string>>> = {
  slack: '/opt/openclaw/node_modules/@openclaw/slack',
};

/** Returns the channels all of whose tokens an agent has, each with the variables of its tokens. */
function channelsWithTokens(
  variables: ReadonlySet<string>,
): (readonly [ChannelName, Readonly<Record<string, string>>])[] {
  // The table's keys are its channels.
  const all = Object.entries(CHANNEL_TOKENS) as [ChannelName, Readonly<Record<string, string>>][];
  return all.filter(([, tokens]) => Object.values(tokens).every((name) => variables.has(name)));
}

/**
 * Returns the part of OpenClaw's configuration for an agent with these variables. It refers to tokens by
 * variable, and to a variable only while that exists, without which OpenClaw would not start.
 */
export function channelConfig(variables: ReadonlySet<string>, user: JsonObject): JsonObject {
  const present = channelsWithTokens(variables);
  if (present.length === 0) return {};
  const entries = present.map(([name, tokens]) => {
    const fields = Object.entries(tokens).map(([field, variable]) => [field, `\${${variable}}`]);
    return [name, Object.fromEntries(fields)] as const;
  });
  const packages = present.flatMap(([name]) => {
    const path = PACKAGES[name];
    return path === undefined ? [] : [{ name, path }];
  });
  return { channels: Object.fromEntries(entries), ...packageConfig(packages, user) };
}

/** Returns the part that has OpenClaw load packages, and trust them. */
function packageConfig(
  packages: readonly { readonly name: string; readonly path: string }[],
  user: JsonObject,
): JsonObject {
  if (packages.length === 0) return {};
  return {
    plugins: {
      load: { paths: [...pathsOf(user), ...packages.map(({ path }) => path)] },
      entries: Object.fromEntries(packages.map(({ name }) => [name, { enabled: true }])),
    },
  };
}

/** Returns the paths from which the user's part of a configuration loads packages. */
function pathsOf({ plugins }: JsonObject): unknown[] {
  const load = isObject(plugins) && isObject(plugins.load) ? plugins.load : {};
  return Array.isArray(load.paths) ? load.paths : [];
}

/** Returns the settings of tokens that a configuration has by variable, as paths. */
export function tokenPaths(config: unknown): string[][] {
  const channels = isObject(config) && isObject(config.channels) ? config.channels : {};
  return Object.entries(CHANNEL_TOKENS).flatMap(([name, tokens]) => {
    const entry = Object.hasOwn(channels, name) ? channels[name] : undefined;
    if (!isObject(entry)) return [];
    return Object.entries(tokens)
      .filter(([field, variable]) => entry[field] === `\${${variable}}`)
      .map(([field]) => ['channels', name, field]);
  });
}

/** Returns the channels of an agent, by the user's part of its configuration and its variables. */
export function channelsOf(userConfig: unknown, variables: ReadonlySet<string>): string[] {
  const own = isObject(userConfig) && isObject(userConfig.channels) ? userConfig.channels : {};
  const names = [...Object.keys(own), ...channelsWithTokens(variables).map(([name]) => name)];
  return [...new Set(names)].filter((name) => !SHARED.has(name)).sort();
}
