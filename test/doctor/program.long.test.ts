import { execFile } from 'node:child_process';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import path from 'node:path';
import { expect, test } from 'vitest';
import { projectRoot } from '../../dev/root.js';
import { PROVIDER_NAMES } from '../../src/ai/completion/provider-names.js';
import { migrationSettings } from '../../src/platform/database/settings.js';
import { variablesOf } from '../../src/platform/environment/area.js';
import { AREAS } from '../../src/settings.js';

const PROGRAM = path.join('dist-dev', 'scripts', 'doctor.js');

/** Milliseconds within which every run ends, on a busy machine. */
const RUN_MS = 60_000;

interface Run {
  readonly code: unknown;
  readonly output: string;
}

/** Runs the program with only these variables. */
function doctor(env: Readonly<Record<string, string>>, ...args: string[]): Promise<Run> {
  const options = { cwd: projectRoot, env: { PATH: process.env.PATH, ...env }, timeout: RUN_MS };
  return new Promise((resolve) => {
    execFile(process.execPath, [PROGRAM, ...args], options, (error, stdout, stderr) =>
      resolve({ code: error ? error.code : 0, output: stdout + stderr }),
    );
  });
}

const marker = (): string => randomBytes(32).toString('hex');

/** Values of secret settings, with the part of each that must not be printed. Port 1 has no listener. */
function secrets(): Readonly<Record<string, readonly [value: string, secret: string]>> {
  const keyed = (before: string, after = '') => {
    const secret = marker();
    return [`${before}${secret}${after}`, secret] as const;
  };
  const key = randomBytes(32).toString('base64');
  const other = randomBytes(32).toString('base64');
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const tlsKey = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  return {
    CHAIN_RPC_URL: keyed('http://127.0.0.1:1/v2/'),
    CODEHOST_CLIENT_SECRET: keyed(''),
    DATABASE_OWNER_URL: keyed('postgres://owner:', '@127.0.0.1:1/aps'),
    DATABASE_URL: keyed('postgres://serving:', '@127.0.0.1:1/aps'),
    DISCORD_WEBHOOK_URL: keyed('http://127.0.0.1:1/webhooks/1/'),
    EMAIL_API_KEY: keyed(''),
    EMAIL_WEBHOOK_SECRET: [`whsec_${other}`, other],
    ENCRYPTION_KEY: [key, key],
    ENCRYPTION_KEYS: [`2:${other},1:${key}`, other],
    HOST_TLS_KEY: [tlsKey, tlsKey.split('\n')[1] ?? tlsKey],
    IDP_CLIENT_SECRET: keyed(''),
    INTERNAL_API_KEY: keyed(''),
    INTERNAL_API_KEY_PREVIOUS: keyed(''),
    OPERATOR_PRIVATE_KEY: keyed('0x'),
    PLATFORM_TOKEN_RPC_URL: keyed('http://127.0.0.1:1/v2/'),
    REDIS_URL: keyed('redis://user:', '@127.0.0.1:1'),
    SMTP_URL: keyed('smtp://user:', '@127.0.0.1:1'),
    PAYPROC_SECRET_KEY: keyed('sk_test_'),
    PAYPROC_WEBHOOK_SECRET: keyed('whsec_'),
    RADIO_ADMIN_PASSWORD: keyed(''),
    RADIO_AUTH_SECRET: keyed(''),
    SUMMARIZER_KEY: keyed(''),
    TELEGRAM_BOT_TOKEN: keyed('1:'),
    TEMPORAL_API_KEY: keyed(''),
    TEMPORAL_TLS_CLIENT_KEY_DATA: keyed(''),
    USDC_RPC_URL: keyed('http://127.0.0.1:1/v2/'),
    VIDEO_API_TOKEN: keyed('r8_'),
    VIDEO_WEBHOOK_SECRET: keyed('whsec_'),
    WALLETPROV_API_KEY: keyed(''),
    X402_GATEWAY_URL: keyed('http://user:', '@127.0.0.1:1'),
    ...Object.fromEntries(
      PROVIDER_NAMES.map((name) => [`${name.toUpperCase()}_API_KEY`, keyed('')]),
    ),
  };
}

test('prints no secret, and ends with 1 on a failure', async () => {
  const given = secrets();
  const secretNames = [...Object.values(AREAS), migrationSettings]
    .flatMap((area) => variablesOf(area, { production: false }))
    .flatMap(({ name, options }) => (options.secret ? [name] : []));
  expect(Object.keys(given).toSorted()).toEqual(secretNames.toSorted());
  const env = Object.fromEntries(Object.entries(given).map(([name, [value]]) => [name, value]));
  const { code, output } = await doctor(env);
  expect(code).toBe(1);
  expect(output).toMatch(/^FAILURE +database +PostgreSQL does not answer at 127\.0\.0\.1:1/m);
  const printed = Object.entries(given).filter(([, [, secret]]) => output.includes(secret));
  expect(printed.map(([name]) => name)).toEqual([]);
});

test('prints one line of JSON for programs', async () => {
  const { code, output } = await doctor({ WEB_PORT: 'x' }, '--json');
  expect(code).toBe(1);
  expect(JSON.parse(output)).toMatchObject({
    ok: false,
    findings: expect.arrayContaining([
      {
        check: 'settings',
        status: 'failure',
        text: 'WEB_PORT must be a port from 0 to 65535 (docs/settings.md).',
      },
      expect.objectContaining({ check: 'database', status: 'warning' }),
    ]),
  });
});

test('names a platform that does not run, and leaves out its servers', async () => {
  const env = {
    DATABASE_URL: 'postgres://localhost',
    ENCRYPTION_KEY: Buffer.alloc(32).toString('base64'),
  };
  const { output } = await doctor(env, '--json', '--stopped', '/data', '--skip', 'database');
  const { findings } = JSON.parse(output);
  expect(findings[0]).toEqual({
    check: 'platform',
    status: 'warning',
    text: 'No platform runs in /data: run npm start. Only checks that need no platform are made.',
  });
  expect(findings).not.toContainEqual(expect.objectContaining({ check: 'database' }));
});
