import { expect, it } from 'vitest';
import { channelsOf } from '../../../src/docker/containers/openclaw-channels.js';
import {
  openClawConfig,
  openClawEnvironment,
  openClawSecrets,
  platformDifferences,
  platformPart,
} from '../../../src/docker/containers/openclaw-config.js';

const options = { aiBaseUrl: 'http://host.docker.internal:3002/v1', model: 'auto' };

it('points the runtime at the platform as its only provider', () => {
  const config: unknown = JSON.parse(openClawConfig(options));
  expect(config).toMatchObject({
    gateway: {
      bind: 'lan',
      port: 18789,
      http: { endpoints: { chatCompletions: { enabled: true } } },
    },
    models: { mode: 'replace', providers: { platform: { baseUrl: options.aiBaseUrl } } },
    agents: { defaults: { model: { primary: 'platform/auto' } } },
  });
});

it("applies the user's settings, except the gateway, the providers and the model", () => {
  const userConfig = {
    tools: { profile: 'minimal' },
    gateway: { auth: { mode: 'none' }, trustedProxies: ['0.0.0.0/0'] },
    models: { mode: 'merge', providers: { platform: { apiKey: 'x' }, other: {} } },
    agents: { defaults: { model: { primary: 'other/x' }, workspace: '/home/node/w' } },
    __proto__: { polluted: true },
  };
  const plain: unknown = JSON.parse(openClawConfig(options));
  const merged: unknown = JSON.parse(openClawConfig({ ...options, userConfig }));
  const { gateway, models } = plain as Record<string, unknown>;
  expect(merged).toMatchObject({
    tools: { profile: 'minimal' },
    agents: { defaults: { model: { primary: 'platform/auto' }, workspace: '/home/node/w' } },
  });
  expect((merged as Record<string, unknown>).gateway).toEqual(gateway);
  expect((merged as Record<string, unknown>).models).toEqual(models);
});

it('ignores settings that are not an object', () => {
  for (const userConfig of [undefined, null, 'text', 7, ['a']]) {
    expect(openClawConfig({ ...options, userConfig })).toBe(openClawConfig(options));
  }
});

it('keeps secrets out of the file and of the environment that Docker shows', () => {
  const secrets = openClawSecrets({ gatewayToken: 'gate-1', aiToken: 'ai-1' });
  expect(secrets).toEqual({ OPENCLAW_GATEWAY_TOKEN: 'gate-1', PLATFORM_AI_TOKEN: 'ai-1' });
  const names = [...openClawConfig(options).matchAll(/\$\{(\w+)\}/g)].map((match) => match[1]);
  expect(names).toEqual(['OPENCLAW_GATEWAY_TOKEN', 'PLATFORM_AI_TOKEN']);
  for (const name of names) {
    expect(secrets).toHaveProperty(name ?? '');
    expect(openClawEnvironment()).not.toHaveProperty(name ?? '');
  }
});

it("contains the sizes of a small model, and no more than the runtime's own limits", () => {
  const modelOf = (sizes?: { contextWindow: number; maxOutput: number }) =>
    JSON.parse(openClawConfig({ ...options, sizes })).models.providers.platform.models[0];
  expect(modelOf()).toMatchObject({ contextWindow: 128_000, maxTokens: 8_192 });
  const small = { contextWindow: 32_768, maxOutput: 4_096 };
  expect(modelOf(small)).toMatchObject({ contextWindow: 32_768, maxTokens: 4_096 });
  const large = { contextWindow: 1_000_000, maxOutput: 128_000 };
  expect(modelOf(large)).toMatchObject({ contextWindow: 128_000, maxTokens: 8_192 });
});

const TOKENS = ['TELEGRAM_BOT_TOKEN', 'DISCORD_BOT_TOKEN', 'SLACK_BOT_TOKEN', 'SLACK_APP_TOKEN'];

const configFor = (variables: readonly string[], userConfig?: unknown) =>
  JSON.parse(openClawConfig({ ...options, userConfig, variables: new Set(variables) }));

it('refers to the tokens of channels by variable', { tags: 'attack' }, () => {
  expect(configFor(TOKENS).channels).toEqual({
    telegram: { botToken: '${TELEGRAM_BOT_TOKEN}' },
    discord: { token: '${DISCORD_BOT_TOKEN}' },
    slack: { botToken: '${SLACK_BOT_TOKEN}', appToken: '${SLACK_APP_TOKEN}' },
  });
});

it('has no channel without all of its tokens', () => {
  for (const variables of [[], ['SLACK_BOT_TOKEN'], ['SLACK_APP_TOKEN'], ['SHOP_TOKEN']]) {
    expect(configFor(variables)).not.toHaveProperty('channels');
  }
});

it("keeps the user's settings of a channel, and replaces its token", () => {
  const telegram = { botToken: '1:of-the-user', dmPolicy: 'open' };
  const load = { paths: ['/home/node/mine'] };
  const userConfig = { channels: { telegram, irc: { nick: 'ada' } }, plugins: { load } };
  const { channels, plugins } = configFor(TOKENS, userConfig);
  expect(channels.telegram).toEqual({ botToken: '${TELEGRAM_BOT_TOKEN}', dmPolicy: 'open' });
  expect(channels.irc).toEqual({ nick: 'ada' });
  expect(plugins.load.paths).toEqual([
    '/home/node/mine',
    '/opt/openclaw/node_modules/@openclaw/slack',
  ]);
  expect(plugins.entries).toEqual({ slack: { enabled: true } });
  expect(configFor([], userConfig).channels.telegram).toEqual(telegram);
});

it("finds the channels of the user's settings and of tokens", () => {
  const runtime = { channels: { irc: {}, telegram: {}, defaults: {}, modelByChannel: {} } };
  expect(channelsOf(runtime, new Set(TOKENS))).toEqual(['discord', 'irc', 'slack', 'telegram']);
  expect(channelsOf(runtime, new Set())).toEqual(['irc', 'telegram']);
  for (const none of [undefined, null, [], { channels: [] }, { channels: { defaults: {} } }]) {
    expect(channelsOf(none, new Set(['SLACK_APP_TOKEN']))).toEqual([]);
  }
});

it("counts the references to tokens among the platform's part, and no token of the user", () => {
  const wanted = configFor(['TELEGRAM_BOT_TOKEN']);
  expect(platformDifferences(wanted, wanted)).toEqual([]);
  const moved = { ...wanted, channels: { telegram: { botToken: '2:other' } } };
  expect(platformDifferences(moved, wanted)).toEqual(['channels.telegram.botToken']);
  const own = configFor([], { channels: { telegram: { botToken: '1:of-the-user' } } });
  expect(JSON.stringify(platformPart(own))).not.toContain('1:of-the-user');
});
