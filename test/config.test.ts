import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ConfigError, loadConfig } from '../src/config.js';

const KEY = Buffer.alloc(32, 7).toString('base64');
const NEEDED = { DATABASE_URL: 'postgres://u:p@localhost/db', ENCRYPTION_KEY: KEY };

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'config-test-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

function problemsOf(env: Record<string, string | undefined>): readonly string[] {
  try {
    loadConfig(env);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

describe('the environment', () => {
  test('needs a database and an encryption key, and has a default for all else', () => {
    expect(problemsOf({})).toEqual(['DATABASE_URL is missing', 'ENCRYPTION_KEY is missing']);
    const config = loadConfig(NEEDED);
    expect(config).toMatchObject({
      webPort: 3000,
      backendPort: 3001,
      host: '127.0.0.1',
      webUrl: 'http://127.0.0.1:3000',
      backendUrl: 'http://127.0.0.1:3001',
      agentHost: 'local',
      agentHostCapacity: 900,
      agentPortRange: { first: 19100, last: 19999 },
      agentAiPort: 3002,
      agentDomain: 'localhost',
      provisioningEnabled: true,
      sessionCookieSecure: false,
      botDetection: false,
      aiProvider: 'openrouter',
      watchdogCheckIntervalMs: 120_000,
      logLevel: 'info',
    });
  });

  test('is reported with all of its problems at once, missing apart from malformed', () => {
    const problems = problemsOf({
      DATABASE_URL: 'mysql://localhost',
      WEB_PORT: '70000',
      PROVISIONING_ENABLED: 'yes',
      AGENT_PORT_RANGE: '20000',
      AGENT_SUBNET_POOL: '10.0.0.0/8',
      AI_PROVIDER: 'nobody',
      WATCHDOG_CHECK_INTERVAL: 'soon',
      TRUSTED_PROXIES: 'proxy.example',
      REDIS_URL: 'localhost:6379',
    });
    for (const name of [
      'DATABASE_URL must',
      'WEB_PORT must',
      'PROVISIONING_ENABLED must',
      'AGENT_PORT_RANGE must',
      'AGENT_SUBNET_POOL must',
      'AI_PROVIDER must',
      'WATCHDOG_CHECK_INTERVAL must',
      'TRUSTED_PROXIES must',
      'REDIS_URL must',
      'ENCRYPTION_KEY is missing',
    ]) {
      expect(problems.filter((problem) => problem.startsWith(name))).toHaveLength(1);
    }
    expect(problems).toHaveLength(10);
  });

  test('never has a value of its secrets printed', () => {
    const secrets = {
      DATABASE_URL: 'mysql://user:hunter2@localhost',
      REDIS_URL: 'http://:hunter2@localhost',
      ENCRYPTION_KEY: 'hunter2',
      INTERNAL_API_KEY: 'hunter2',
    };
    const problems = problemsOf(secrets);
    expect(problems).toHaveLength(3);
    expect(String(new ConfigError(problems))).not.toContain('hunter2');
  });

  test('takes secrets from files that NAME_FILE names', async () => {
    const file = path.join(folder, 'key');
    await writeFile(file, `${KEY}\n`);
    const { ENCRYPTION_KEY: _, ...rest } = NEEDED;
    expect(loadConfig({ ...rest, ENCRYPTION_KEY_FILE: file }).encryptionKey).toEqual(
      Buffer.alloc(32, 7),
    );
    const nowhere = { ...NEEDED, INTERNAL_API_KEY_FILE: path.join(folder, 'nothing') };
    expect(problemsOf(nowhere)).toEqual(['INTERNAL_API_KEY_FILE names a file that cannot be read']);
  });

  test('in production needs the internal key, and is strict with cookies and robots', () => {
    const production = { ...NEEDED, NODE_ENV: 'production' };
    expect(problemsOf(production)).toEqual(['INTERNAL_API_KEY is missing']);
    expect(loadConfig({ ...production, INTERNAL_API_KEY: 'k' })).toMatchObject({
      sessionCookieSecure: true,
      botDetection: true,
    });
  });

  test.each([
    ['120', 120_000],
    ['120s', 120_000],
    ['5m', 300_000],
    ['500ms', 500],
  ])('reads the duration %s as %d ms', (text, ms) => {
    const config = loadConfig({ ...NEEDED, WATCHDOG_CHECK_INTERVAL: text });
    expect(config.watchdogCheckIntervalMs).toBe(ms);
  });

  test('takes a host by its name, with as many places as ports unless it says how many', () => {
    const host = { ...NEEDED, AGENT_HOST: 'host-1', AGENT_PORT_RANGE: '20000-20009' };
    expect(loadConfig(host)).toMatchObject({ agentHost: 'host-1', agentHostCapacity: 10 });
    const drained = { ...host, AGENT_HOST_CAPACITY: '0' };
    expect(loadConfig(drained)).toMatchObject({ agentHostCapacity: 0 });
    for (const name of ['-host', 'Host', 'host_1', 'h'.repeat(64)]) {
      expect(problemsOf({ ...NEEDED, AGENT_HOST: name })).toEqual([
        expect.stringContaining('AGENT_HOST must'),
      ]);
    }
    expect(problemsOf({ ...NEEDED, AGENT_HOST_CAPACITY: '-1' })).toEqual([
      'AGENT_HOST_CAPACITY must be a whole number from 0 to 65535',
    ]);
  });

  test('configures a provider by a key, or by an address alone', () => {
    const config = loadConfig({
      ...NEEDED,
      GROQ_API_KEY: 'key',
      OPENAI_BASE_URL: 'http://localhost:11434/v1/',
    });
    expect(config.providers).toEqual({
      groq: { apiKey: 'key', baseUrl: 'https://api.groq.com/openai/v1' },
      openai: { apiKey: undefined, baseUrl: 'http://localhost:11434/v1' },
    });
  });

  test.each(['two\nlines', 'a\u0001b', 'with space', 'ключ'])(
    'refuses a key to a provider that no header can hold: %j',
    (key) => {
      const problems = problemsOf({ ...NEEDED, GROQ_API_KEY: key });
      expect(problems).toEqual(['GROQ_API_KEY must be one line of visible ASCII characters']);
    },
  );

  test('takes Telegram only with both a bot and a chat', () => {
    const bot = { ...NEEDED, TELEGRAM_BOT_TOKEN: '12:abc' };
    expect(loadConfig(bot).telegram).toBeUndefined();
    expect(loadConfig({ ...bot, TELEGRAM_ADMIN_CHAT_ID: '-100' }).telegram).toEqual({
      apiUrl: 'https://api.telegram.org',
      botToken: '12:abc',
      chatId: '-100',
    });
    const malformed = { TELEGRAM_BOT_TOKEN: 'hunter2', DISCORD_WEBHOOK_URL: 'discord:hunter2' };
    const problems = problemsOf({ ...NEEDED, ...malformed });
    expect(problems).toHaveLength(2);
    expect(String(new ConfigError(problems))).not.toContain('hunter2');
  });

  test('treats an empty variable as none, and admin emails in any case alike', () => {
    const config = loadConfig({
      ...NEEDED,
      HOST: ' ',
      ADMIN_EMAILS: 'Ada@Example.com, ,bob@x.org',
    });
    expect(config.host).toBe('127.0.0.1');
    expect(config.adminEmails).toEqual(['ada@example.com', 'bob@x.org']);
  });
});
