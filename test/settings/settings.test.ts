import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { variablesOf } from '../../src/platform/environment/area.js';
import { startsOn } from '../../src/agents/watchdog/host-limiters.js';
import { SettingsError } from '../../src/platform/environment/settings-error.js';
import { AREAS, loadPaymentSettings, loadSettings } from '../../src/settings.js';

const KEY = Buffer.alloc(32, 7).toString('base64');
const NEEDED = { DATABASE_URL: 'postgres://u:p@localhost/db', ENCRYPTION_KEY: KEY };
const OPERATOR_KEY = `0x${'0'.repeat(63)}1`;
const PRODUCTION = {
  NODE_ENV: 'production',
  INTERNAL_API_KEY: 'k'.repeat(32),
  AGENT_RUNTIME_IMAGE: 'mine:1',
  AGENT_EGRESS_IMAGE: `sha256:${'e'.repeat(64)}`,
};

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'settings-test-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

function problemsOf(env: Record<string, string | undefined>): readonly string[] {
  try {
    loadSettings(env);
  } catch (error) {
    if (error instanceof SettingsError) return error.problems;
    throw error;
  }
  return [];
}

describe('settings from the environment', () => {
  test('requires a database and an encryption key, and has a default for everything else', () => {
    expect(problemsOf({})).toEqual(['DATABASE_URL is missing', 'ENCRYPTION_KEY is missing']);
    expect(loadSettings(NEEDED)).toMatchObject({
      http: {
        webPort: 3000,
        backendPort: 3001,
        host: '127.0.0.1',
        webUrl: 'http://127.0.0.1:3000',
        backendUrl: 'http://127.0.0.1:3001',
        agentsAt: { domain: 'localhost', scheme: 'http', port: 3000 },
      },
      agents: {
        host: 'local',
        hostCapacity: undefined,
        portRange: { first: 19100, last: 19999 },
        aiPort: 3002,
        provisioningEnabled: true,
        watchdog: {
          checkIntervalMs: 120_000,
          degradedCheckIntervalMs: 5_000,
          autoRepair: true,
          maxRepairAttempts: 2,
          startupFailureThreshold: 3,
          crashLoopThreshold: 3,
          crashLoopWindowMs: 300_000,
        },
      },
      accounts: { sessionCookieSecure: false, botDetection: false, firstIsAdmin: true },
      ai: { provider: 'openrouter', modelTimeoutMs: 30_000, trustHeaders: 'loopback' },
      process: { production: false, logLevel: 'info' },
    });
  });

  test('reports all problems at once, missing variables apart from malformed ones', () => {
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

  test('prints no value of a variable, secret or not', () => {
    const names = Object.values(AREAS).flatMap((area) => variablesOf(area, { production: true }));
    const env = Object.fromEntries(names.map(({ name }) => [name, 'hunter 2']));
    const problems = problemsOf({ ...env, NODE_ENV: 'production' });
    expect(problems).toEqual(
      expect.arrayContaining([
        'DATABASE_URL must be an address that starts with postgres:// or postgresql://',
        'REDIS_URL must be an address that starts with redis:// or rediss://',
        'ENCRYPTION_KEY must be 32 bytes in base64 (openssl rand -base64 32)',
      ]),
    );
    expect(String(new SettingsError(problems))).not.toContain('hunter');
  });

  test.each(['0.0.0.0', '192.168.1.2', '::', 'my-machine'])(
    'refuses to serve development at %s unless EXPOSE_DEVELOPMENT is set',
    (HOST) => {
      expect(problemsOf({ ...NEEDED, HOST })).toEqual([
        expect.stringMatching(/^HOST is an address/),
      ]);
      expect(problemsOf({ ...NEEDED, HOST, EXPOSE_DEVELOPMENT: 'true' })).toEqual([]);
    },
  );

  test.each(['127.0.0.1', '127.1.2.3', '::1', 'localhost'])(
    'serves development at %s without EXPOSE_DEVELOPMENT',
    (HOST) => {
      expect(problemsOf({ ...NEEDED, HOST })).toEqual([]);
    },
  );

  test('requires a long internal key in production, and accepts a previous key next to it', () => {
    const env = { ...NEEDED, ...PRODUCTION };
    expect(problemsOf({ ...env, INTERNAL_API_KEY: 'x'.repeat(31) })).toEqual([
      expect.stringMatching(/^INTERNAL_API_KEY must be at least 32 characters/),
    ]);
    const keys = { INTERNAL_API_KEY: 'x'.repeat(32), INTERNAL_API_KEY_PREVIOUS: 'short' };
    expect(loadSettings({ ...env, ...keys }).http.internalApiKeys).toEqual(Object.values(keys));
  });

  test('requires Redis for several API processes', () => {
    const env = { ...NEEDED, API_PROCESSES: '2' };
    expect(problemsOf(env)).toEqual([expect.stringMatching(/^API_PROCESSES needs REDIS_URL/)]);
    expect(problemsOf({ ...env, REDIS_URL: 'redis://127.0.0.1:6379' })).toEqual([]);
  });

  test('requires both secrets of the radio, and an address for listeners in production', () => {
    const radio = {
      ...NEEDED,
      ...PRODUCTION,
      RADIO_ICECAST_URL: 'http://icecast:8000',
      PRIVATE_HOSTS: 'icecast',
    };
    expect(problemsOf(radio)).toEqual([
      expect.stringMatching(/^RADIO_ADMIN_PASSWORD is missing/),
      expect.stringMatching(/^RADIO_AUTH_SECRET is missing/),
      expect.stringMatching(/^RADIO_PUBLIC_URL is missing/),
    ]);
    const secrets = { RADIO_ADMIN_PASSWORD: 'a'.repeat(32), RADIO_AUTH_SECRET: 'b'.repeat(32) };
    const whole = { ...radio, ...secrets, RADIO_PUBLIC_URL: 'https://radio.example:8443' };
    expect(problemsOf(whole)).toEqual([]);
    expect(problemsOf({ ...whole, RADIO_PUBLIC_URL: 'http://radio.example' })).toHaveLength(1);
    expect(problemsOf({ ...whole, RADIO_AUTH_SECRET: 'short' })).toHaveLength(1);
  });

  test('refuses an address of the provider of videos without TLS in production, beyond this machine', () => {
    const production = { ...NEEDED, ...PRODUCTION };
    expect(problemsOf({ ...production, VIDEO_API_URL: 'http://videos.example' })).toEqual([
      expect.stringMatching(/^VIDEO_API_URL .*https/),
    ]);
    expect(problemsOf({ ...production, VIDEO_API_URL: 'http://127.0.0.1:3040' })).toEqual([]);
    expect(loadSettings(NEEDED).videos.apiUrl).toBe('https://api.replicate.com');
  });

  test('names the file of feeds that cannot be read', () => {
    expect(problemsOf({ ...NEEDED, DATAFEEDS_FILE: '/nowhere/feeds.json' })).toEqual([
      'the file that DATAFEEDS_FILE names cannot be read',
    ]);
  });

  test('requires the key by which a summarizer recognizes buyers in production', () => {
    const sold = { ...NEEDED, ...PRODUCTION, SUMMARIZER_URL: 'http://127.0.0.1:3100' };
    expect(problemsOf(sold)).toEqual([expect.stringMatching(/^SUMMARIZER_KEY is missing/)]);
    expect(problemsOf({ ...sold, SUMMARIZER_KEY: 'short' })).toEqual([
      expect.stringMatching(/^SUMMARIZER_KEY must be at least 32 characters/),
    ]);
    const key = 'k'.repeat(32);
    const { http } = loadSettings({ ...sold, SUMMARIZER_KEY: key });
    expect(http.summarizer).toEqual({ url: 'http://127.0.0.1:3100', key });
    expect(loadSettings(NEEDED).http.summarizer).toBeUndefined();
  });

  describe('key ring settings', () => {
    const other = Buffer.alloc(32, 8).toString('base64');
    const ID = { INSTALLATION_ID: '0123456789abcdef' };

    test('puts the named encryption keys first and ENCRYPTION_KEY last, named 1', () => {
      const { secrets } = loadSettings({ ...NEEDED, ...ID, ENCRYPTION_KEYS: `b:${other}` });
      expect(secrets.keys.map(({ id, key }) => [id, key[0]])).toEqual([
        ['b', 8],
        ['1', 7],
      ]);
      const { ENCRYPTION_KEY: _, ...rest } = NEEDED;
      const ring = loadSettings({ ...rest, ...ID, ENCRYPTION_KEYS: `b:${other}, 1:${KEY}` });
      expect(ring.secrets).toEqual(secrets);
    });

    test('requires INSTALLATION_ID when keys change, and names the value used so far', () => {
      const { installation } = loadSettings(NEEDED).secrets;
      expect(problemsOf({ ...NEEDED, ENCRYPTION_KEYS: `b:${other}` })).toEqual([
        `INSTALLATION_ID is missing: it must stay as the keys change; without one it was ${installation}`,
      ]);
      const env = { ...NEEDED, ENCRYPTION_KEYS: `b:${other}`, INSTALLATION_ID: installation };
      expect(loadSettings(env).secrets.installation).toBe(installation);
    });

    test.each(['', `:${other}`, `b:${other},b:${KEY}`, 'b:short', `b:${other},c`])(
      'refuses a malformed key ring (%#)',
      (ENCRYPTION_KEYS) => {
        const { ENCRYPTION_KEY: _, ...rest } = NEEDED;
        expect(problemsOf({ ...rest, ...ID, ENCRYPTION_KEYS })).toHaveLength(1);
      },
    );

    test('refuses two encryption keys with the same name', () => {
      expect(problemsOf({ ...NEEDED, ...ID, ENCRYPTION_KEYS: `1:${other}` })).toEqual([
        'ENCRYPTION_KEY is not the key 1 of ENCRYPTION_KEYS',
      ]);
    });
  });

  test.each(['DATABASE_OWNER_URL', 'DATABASE_OWNER_URL_FILE'])(
    'refuses the database owner in serving processes (%s)',
    (name) => {
      const [problem, ...others] = problemsOf({ ...NEEDED, [name]: '/dev/null/none' });
      expect(others).toEqual([]);
      expect(problem).toMatch(/^DATABASE_OWNER_URL/);
    },
  );

  test.each(['OPERATOR_PRIVATE_KEY', 'OPERATOR_PRIVATE_KEY_FILE'])(
    'refuses the payment key in processes that do not pay (%s)',
    { tags: 'attack' },
    async (name) => {
      const file = path.join(folder, 'operator');
      await writeFile(file, OPERATOR_KEY);
      const env = { ...NEEDED, [name]: name.endsWith('_FILE') ? file : OPERATOR_KEY };
      expect(problemsOf(env)).toEqual([
        'OPERATOR_PRIVATE_KEY must be left to worker/payments.js: no other process has it',
      ]);
      expect(loadPaymentSettings(env).chain.operator).toMatchObject({ privateKey: OPERATOR_KEY });
    },
  );

  test('passes the TEMPORAL_ variables to the connection to Temporal', () => {
    const reported = { TEMPORAL_ADDRESS: 'temporal:7233', TEMPORAL_API_KEY: 'key' };
    expect(loadSettings({ ...NEEDED, ...reported, PATH: '/bin' }).temporal.connection).toEqual(
      reported,
    );
  });

  test('reads any variable from the file that NAME_FILE names', async () => {
    const [key, port] = [path.join(folder, 'key'), path.join(folder, 'port')];
    await writeFile(key, `${KEY}\n`);
    await writeFile(port, '4000');
    const { ENCRYPTION_KEY: _, ...rest } = NEEDED;
    const files = { ...rest, ENCRYPTION_KEY_FILE: key, WEB_PORT_FILE: port };
    expect(loadSettings(files)).toMatchObject({
      secrets: { keys: [{ id: '1', key: Buffer.alloc(32, 7) }] },
      http: { webPort: 4000 },
    });
    await writeFile(port, 'four thousand');
    expect(problemsOf(files)).toEqual(['WEB_PORT must be a port from 0 to 65535']);
    const nowhere = { ...NEEDED, INTERNAL_API_KEY_FILE: path.join(folder, 'nothing') };
    expect(problemsOf(nowhere)).toEqual(['INTERNAL_API_KEY_FILE names a file that cannot be read']);
  });

  test('requires the internal key in production, with secure cookies and bot detection', () => {
    const { INTERNAL_API_KEY: _, ...production } = { ...NEEDED, ...PRODUCTION };
    expect(problemsOf(production)).toEqual(['INTERNAL_API_KEY is missing']);
    expect(loadSettings({ ...production, INTERNAL_API_KEY: 'k'.repeat(32) })).toMatchObject({
      accounts: { sessionCookieSecure: true, botDetection: true, firstIsAdmin: false },
    });
  });

  test('trusts no headers of callers without a key in production', () => {
    const production = { ...NEEDED, ...PRODUCTION };
    expect(loadSettings(production).ai.trustHeaders).toBe('never');
    expect(problemsOf({ ...production, AI_TRUST_HEADERS: 'loopback' })).toEqual([
      'AI_TRUST_HEADERS must be never in production',
    ]);
  });

  test('agents have no address in production without AGENT_DOMAIN, and one each with it', () => {
    const agentsAt = (env: Record<string, string>) =>
      loadSettings({ ...NEEDED, ...PRODUCTION, ...env }).http.agentsAt;
    expect(agentsAt({})).toBeUndefined();
    expect(agentsAt({ AGENT_DOMAIN: 'agents.example' })).toEqual({
      domain: 'agents.example',
      scheme: 'https',
      port: undefined,
    });
  });

  test('refuses agents below the registered name of the platform', { tags: 'attack' }, () => {
    const problems = (AGENT_DOMAIN: string, WEB_URL: string) =>
      problemsOf({ ...NEEDED, ...PRODUCTION, AGENT_DOMAIN, WEB_URL });
    const refusal = [
      expect.stringMatching(/^AGENT_DOMAIN shares its registered name with WEB_URL/),
    ];
    expect(problems('agents.example.com', 'https://app.example.com')).toEqual(refusal);
    expect(problems('example.com', 'https://example.com')).toEqual(refusal);
    expect(problems('a.shop.co.uk', 'https://www.shop.co.uk')).toEqual(refusal);
    expect(problems('agents.example.net', 'https://app.example.com')).toEqual([]);
    expect(problems('agents.co.uk', 'https://shop.co.uk')).toEqual([]);
  });

  test('requires images of agents with digests in production', { tags: 'attack' }, () => {
    const digest = `sha256:${'a'.repeat(64)}`;
    const problems = (AGENT_RUNTIME_IMAGE: string | undefined, AGENT_VERSIONS?: string) =>
      problemsOf({ ...NEEDED, ...PRODUCTION, AGENT_RUNTIME_IMAGE, AGENT_VERSIONS });
    const usual = expect.stringMatching(/^AGENT_RUNTIME_IMAGE must end in the digest/);
    const others = 'AGENT_VERSIONS must have every release with its digest in production';
    expect(problems(undefined)).toEqual([usual]);
    expect(problems('ghcr.io/a/b:1')).toEqual([usual]);
    expect(problems(undefined, '2020.1.1')).toEqual([usual, others]);
    expect(problems(`ghcr.io/a/b:1@${digest}`, '2020.1.1')).toEqual([others]);
    expect(problems(`ghcr.io/a/b:1@${digest}`, `2020.1.1@${digest}`)).toEqual([]);
    expect(problems(undefined, `2026.9.6@${digest}, 2020.1.1@${digest}`)).toEqual([]);
    expect(problems('on-the-engine:1', '2')).toEqual([]);
    expect(problemsOf({ ...NEEDED, AGENT_VERSIONS: '2020.1.1' })).toEqual([]);
    for (const versions of ['1@', '1@sha256:1', '@1', 'a b', `x/y:1`, `1@${digest}0`]) {
      expect(problems('mine:1', versions)).toEqual([expect.stringContaining('must be releases')]);
    }
  });

  test('requires the image that gets NET_ADMIN by digest in production', { tags: 'attack' }, () => {
    const digest = `sha256:${'a'.repeat(64)}`;
    const problems = (env: Record<string, string | undefined>) =>
      problemsOf({ ...NEEDED, ...PRODUCTION, ...env });
    const wanted = [expect.stringMatching(/^AGENT_EGRESS_IMAGE must end in the digest/)];
    for (const AGENT_EGRESS_IMAGE of [
      undefined,
      'helper:1',
      'ghcr.io/a/helper',
      'ghcr.io/a/helper:1',
      digest.slice(0, -1),
      `${digest}0`,
      'a'.repeat(64),
    ]) {
      expect(problems({ AGENT_EGRESS_IMAGE })).toEqual(wanted);
      expect(problems({ AGENT_EGRESS_IMAGE, AGENT_EGRESS: 'open' })).toEqual([]);
    }
    expect(problems({ AGENT_EGRESS_IMAGE: `ghcr.io/a/helper:1@${digest}` })).toEqual([]);
    expect(problems({ AGENT_EGRESS_IMAGE: digest })).toEqual([]);
    expect(problemsOf({ ...NEEDED, AGENT_EGRESS_IMAGE: 'helper:1' })).toEqual([]);
  });

  test('repairs agents automatically unless the variable is false', () => {
    const repairs = (reported: string) =>
      loadSettings({ ...NEEDED, WATCHDOG_AUTO_REPAIR: reported }).agents.watchdog.autoRepair;
    expect(['false', 'true', 'yes', '0', ''].map(repairs)).toEqual([false, true, true, true, true]);
  });

  test.each([
    ['120', 120_000],
    ['120s', 120_000],
    ['5m', 300_000],
    ['2h', 7_200_000],
    ['500ms', 500],
  ])('reads the duration %s as %d ms', (text, ms) => {
    const { watchdog } = loadSettings({ ...NEEDED, WATCHDOG_CHECK_INTERVAL: text }).agents;
    expect(watchdog.checkIntervalMs).toBe(ms);
  });

  test('closes payment sessions before their wallets can reclaim the hold', () => {
    expect(loadSettings(NEEDED).paymentSessions).toEqual({
      settleThreshold: 10_000_000n,
      settleIntervalMs: 3_600_000,
      maxAgeMs: 86_400_000,
      holdMs: 172_800_000,
    });
    expect(problemsOf({ ...NEEDED, SESSION_MAX_AGE: '48h' })).toEqual([
      'SESSION_MAX_AGE must be less than SESSION_HOLD',
    ]);
    for (const SESSION_SETTLE_THRESHOLD of ['0', '-1', '1e3', '0.0000001']) {
      expect(problemsOf({ ...NEEDED, SESSION_SETTLE_THRESHOLD })).toEqual([
        expect.stringContaining('SESSION_SETTLE_THRESHOLD must be an amount above zero'),
      ]);
    }
  });

  test('limits concurrent agent starts by the cores of the host, or by the variable', () => {
    const startsAtOnce = (env = {}) => loadSettings({ ...NEEDED, ...env }).agents.startsAtOnce;
    expect(startsAtOnce()).toBe(startsOn(availableParallelism()));
    expect([1, 2, 3, 16].map(startsOn)).toEqual([4, 4, 6, 32]);
    expect(startsAtOnce({ AGENT_STARTS_AT_ONCE: '3' })).toBe(3);
  });

  test('reads the name of a host and its capacity', () => {
    const host = { ...NEEDED, AGENT_HOST: 'host-1', AGENT_PORT_RANGE: '20000-20009' };
    expect(loadSettings(host).agents).toMatchObject({ host: 'host-1' });
    const drained = { ...host, AGENT_HOST_CAPACITY: '0' };
    expect(loadSettings(drained).agents.hostCapacity).toBe(0);
    for (const name of ['-host', 'Host', 'host_1', 'h'.repeat(64)]) {
      expect(problemsOf({ ...NEEDED, AGENT_HOST: name })).toEqual([
        expect.stringContaining('AGENT_HOST must'),
      ]);
    }
    expect(problemsOf({ ...NEEDED, AGENT_HOST_CAPACITY: '-1' })).toEqual([
      'AGENT_HOST_CAPACITY must be a whole number from 0 to 65535',
    ]);
  });

  test('lets an API process of production use Docker only beside a named host', () => {
    const beside = (env: Readonly<Record<string, string>>) => {
      const { host, isApiBesideHost } = loadSettings(env).agents;
      return [host, isApiBesideHost];
    };
    expect(beside(NEEDED)).toEqual(['local', true]);
    const production = { ...NEEDED, ...PRODUCTION };
    expect(beside(production)).toEqual(['local', false]);
    expect(beside({ ...production, AGENT_HOST: 'host-1' })).toEqual(['host-1', true]);
  });

  test('reads the roles of a worker', () => {
    const rolesOf = (env = {}) => [...loadSettings({ ...NEEDED, ...env }).hosts.workerRoles];
    expect(rolesOf()).toEqual(['workflows', 'host']);
    expect(rolesOf({ WORKER_ROLES: 'host' })).toEqual(['host']);
    for (const WORKER_ROLES of ['hosts', ',', 'host,api']) {
      expect(problemsOf({ ...NEEDED, WORKER_ROLES })).toEqual([
        'WORKER_ROLES must be one or both of workflows, host, separated by commas',
      ]);
    }
  });

  test('configures a provider by only a key or only an address', () => {
    const { ai } = loadSettings({
      ...NEEDED,
      GROQ_API_KEY: 'key',
      OPENAI_BASE_URL: 'http://localhost:11434/v1/',
    });
    expect(ai.providers).toEqual({
      groq: { apiKey: 'key', baseUrl: 'https://api.groq.com/openai/v1' },
      openai: { apiKey: undefined, baseUrl: 'http://localhost:11434/v1' },
    });
  });

  test.each(['two\nlines', 'a\u0001b', 'with space', 'ключ'])(
    'refuses a provider key that no header can hold: %j',
    (key) => {
      const problems = problemsOf({ ...NEEDED, GROQ_API_KEY: key });
      expect(problems).toEqual(['GROQ_API_KEY must be one line of visible ASCII characters']);
    },
  );

  test('configures Telegram only with both a bot and a chat', () => {
    const bot = { ...NEEDED, TELEGRAM_BOT_TOKEN: '12:abc' };
    expect(loadSettings(bot).notifications.telegram).toBeUndefined();
    const both = { ...bot, TELEGRAM_ADMIN_CHAT_ID: '-100' };
    expect(loadSettings(both).notifications.telegram).toEqual({
      apiUrl: 'https://api.telegram.org',
      botToken: '12:abc',
      chatId: '-100',
    });
    const malformed = { TELEGRAM_BOT_TOKEN: 'hunter2', DISCORD_WEBHOOK_URL: 'discord:hunter2' };
    const problems = problemsOf({ ...NEEDED, ...malformed });
    expect(problems).toHaveLength(2);
    expect(String(new SettingsError(problems))).not.toContain('hunter2');
  });

  test('treats an empty variable as unset, and compares admin emails case-insensitively', () => {
    const { accounts, http } = loadSettings({
      ...NEEDED,
      HOST: ' ',
      ADMIN_EMAILS: 'Ada@Example.com, ,bob@x.org',
    });
    expect(http.host).toBe('127.0.0.1');
    expect(accounts).toMatchObject({
      adminEmails: ['ada@example.com', 'bob@x.org'],
      firstIsAdmin: false,
    });
  });
});
