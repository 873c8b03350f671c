import { describe, expect, test } from 'vitest';
import { launcherSettings } from '../../../dev/settings.js';
import { variablesOf } from '../../../src/platform/environment/area.js';
import { migrationSettings } from '../../../src/platform/database/settings.js';
import type { Mode, Variable } from '../../../src/platform/environment/area.js';
import { PrivateHosts } from '../../../src/platform/environment/private-hosts.js';
import { SettingsError } from '../../../src/platform/environment/settings-error.js';
import { AREAS, loadSettings } from '../../../src/settings.js';

const PRODUCTION = {
  NODE_ENV: 'production',
  DATABASE_URL: 'postgres://u:p@localhost/db',
  ENCRYPTION_KEY: Buffer.alloc(32, 7).toString('base64'),
  INTERNAL_API_KEY: 'k'.repeat(40),
  AGENT_RUNTIME_IMAGE: `image@sha256:${'0'.repeat(64)}`,
  AGENT_EGRESS_IMAGE: `sha256:${'0'.repeat(64)}`,
};

function problemsOf(env: Readonly<Record<string, string | undefined>>): string {
  try {
    loadSettings({ ...PRODUCTION, ...env });
    return '';
  } catch (error) {
    if (error instanceof SettingsError) return error.problems.join();
    throw error;
  }
}

const hostsOf = (...entries: readonly string[]) => {
  const hosts = new PrivateHosts();
  for (const entry of entries) hosts.add(entry);
  return hosts;
};

const SCHEMES = [
  ...['http', 'https', 'ws', 'wss', 'redis', 'rediss', 'tcp', 'unix', 'npipe', 'postgres'],
  ...['postgresql', 'mysql', 'smtp', 'smtps', 'amqp', 'grpc', 'ftp', 'nats', 'ldap', 'mongodb'],
];

/** Schemes that encrypt, that stay on the machine, or whose use demands STARTTLS. */
const SAFE = new Set(['https', 'rediss', 'unix', 'npipe', 'smtp', 'smtps']);

const every = (mode: Mode) =>
  [...Object.values(AREAS), migrationSettings, launcherSettings].flatMap((area) =>
    variablesOf(area, mode),
  );

const takes = ({ type }: Variable, text: string) => type.safeParse(text).success;

/** Returns the schemes of a variable that holds an address; none for other texts. */
const schemesOf = (variable: Variable) =>
  takes(variable, 'no address') || takes(variable, 'none')
    ? []
    : SCHEMES.filter((each) => takes(variable, `${each}://h`));

/** Variables with an address that the platform listens on, that names a contract, or that has its own check. */
const OTHERS = [
  ...['HOST', 'AGENT_HOST', 'AGENT_AI_HOST', 'TREASURY_ADDRESS', 'OPERATOR_ADDRESS'],
  ...[
    'ESCROW_ADDRESS',
    'EAS_ADDRESS',
    'USDC_ADDRESS',
    'PLATFORM_TOKEN_ADDRESS',
    'TEMPORAL_ADDRESS',
  ],
];

describe('addresses in settings', { tags: 'attack' }, () => {
  const development = every({ production: false }).filter((each) => schemesOf(each).length > 0);
  const switched = development.filter(({ name }) => name === 'HOST_URL');
  const names = development.map(({ name }) => name);

  test('every setting that is named like an address has the type of addresses', () => {
    const named = every({ production: false })
      .map(({ name }) => name)
      .filter((name) => /(_URL|^HOST$|_HOST|_ADDRESS|_ENDPOINT|_SERVER|_WEBHOOK)$/.test(name));
    expect(named.filter((name) => !names.includes(name)).sort()).toEqual(OTHERS.sort());
    expect(names).toEqual(expect.arrayContaining(['DOCKER_HOST', 'DATABASE_OWNER_URL', 'WEB_URL']));
  });

  test.each(names)(
    '%s is refused in production where it leaves the machine in the clear',
    (name) => {
      const production = every({ production: true }).find((each) => each.name === name);
      const mode = { production: true, privateHosts: hostsOf('far.example', '10.1.0.0/16') };
      const declared = every(mode).find((each) => each.name === name);
      const usual = development.find((each) => each.name === name);
      if (!production || !declared || !usual) throw new TypeError(`${name} is declared once`);
      for (const scheme of schemesOf(usual)) {
        const isTaken = SAFE.has(scheme) || switched.includes(usual);
        for (const host of [
          'far.example',
          '10.1.2.3',
          '127.0.0.1.example',
          'u:127.0.0.1@far.example',
        ])
          expect([scheme, takes(production, `${scheme}://${host}/`)]).toEqual([scheme, isTaken]);
        for (const host of ['localhost:1', '127.0.0.1', '[::1]:2'])
          expect([scheme, takes(production, `${scheme}://${host}/`)]).toEqual([scheme, true]);
        for (const host of ['far.example:80', 'FAR.example', '10.1.255.255', 'u:p@far.example'])
          expect([scheme, takes(declared, `${scheme}://${host}/`)]).toEqual([scheme, true]);
        for (const host of ['near.far.example', '10.2.0.1', 'far.example.org'])
          expect([scheme, takes(declared, `${scheme}://${host}/`)]).toEqual([scheme, isTaken]);
        expect(takes(usual, `${scheme}://far.example/`)).toBe(true);
      }
    },
  );

  test.each([
    ['DATABASE_URL', { DATABASE_URL: 'postgres://u:p@10.0.0.5/db' }],
    ['DATABASE_URL', { DATABASE_URL: 'postgres://u:p@db.internal:5432/db?sslmode=prefer' }],
    ['DATABASE_URL', { DATABASE_URL: 'postgres://u:p@localhost.example/db' }],
    ['DATABASE_URL', { DATABASE_URL: 'postgres://u:127.0.0.1@db/db' }],
    ['DATABASE_URL', { DATABASE_URL: 'postgres://u:p@localhost/db?host=db' }],
    ['TEMPORAL_ADDRESS', { TEMPORAL_ADDRESS: 'temporal:7233' }],
    ['TEMPORAL_ADDRESS', { TEMPORAL_ADDRESS: '10.0.0.6:7233' }],
    ['HOST_URL', { HOST_LISTEN: '10.0.0.7:3003' }],
    ['HOST_URL', { HOST_LISTEN: '127.0.0.1:3003', HOST_URL: 'http://worker:3003' }],
  ])('names %s if it leaves the machine in the clear in production: %j', (name, env) => {
    expect(problemsOf(env)).toContain(`${name} `);
  });

  test.each([
    {},
    { DATABASE_URL: 'postgres://u:p@127.0.0.1:5432/db' },
    { DATABASE_URL: 'postgres://u:p@[::1]/db' },
    { DATABASE_URL: 'postgres://u:p@localhost/db?host=/var/run/postgresql' },
    { DATABASE_URL: 'postgres://u:p@db/db?sslmode=verify-full' },
    { DATABASE_URL: 'postgres://u:p@db/db?sslmode=disable' },
    { DATABASE_URL: 'postgres://u:p@db/db', PRIVATE_HOSTS: 'redis, db' },
    { REDIS_URL: 'redis://localhost:1/?host=redis' },
    { TEMPORAL_ADDRESS: 'localhost:7233' },
    { TEMPORAL_ADDRESS: 'temporal:7233', TEMPORAL_API_KEY: 'key' },
    { TEMPORAL_ADDRESS: 'temporal:7233', TEMPORAL_TLS: 'true' },
    { TEMPORAL_ADDRESS: 'temporal:7233', TEMPORAL_TLS: 'false' },
    { TEMPORAL_ADDRESS: 'temporal:7233', PRIVATE_HOSTS: 'temporal' },
    { HOST_LISTEN: '127.0.0.1:3003' },
    { HOST_LISTEN: '10.0.0.7:3003', HOST_URL: 'https://worker' },
    { HOST_LISTEN: '10.0.0.7:3003', HOST_TLS: 'false' },
    { HOST_LISTEN: '10.0.0.7:3003', PRIVATE_HOSTS: '10.0.0.0/24' },
    { HOST_URL: 'http://worker:3003' },
  ])('accepts an address that is local, encrypted, or declared to be private: %j', (env) => {
    expect(problemsOf(env)).toBe('');
  });
});

describe('PRIVATE_HOSTS', () => {
  test('names hosts exactly, and addresses by networks', () => {
    const hosts = hostsOf('redis', 'DB.internal', '10.1.0.0/16', '192.0.2.7', 'fd00::/8');
    for (const host of ['redis', 'redis:6379', 'db.internal', 'db.internal.', '10.1.2.3:80']) {
      expect(hosts.has(host)).toBe(true);
    }
    for (const host of ['192.0.2.7', '[fd12::1]:443', 'fd12::1', 'localhost', '']) {
      expect(hosts.has(host)).toBe(true);
    }
    for (const host of [
      'redis.example',
      'x.redis',
      '10.2.0.1',
      '192.0.2.8',
      '[fe80::1]',
      'other',
    ]) {
      expect(hosts.has(host)).toBe(false);
    }
  });

  test.each([
    'http://redis',
    'redis:6379',
    '10.0.0.0/33',
    '10.0.0',
    '*.internal',
    'a b',
    '-',
    '1/2',
  ])('refuses %j, which names neither a host nor a network', (PRIVATE_HOSTS) => {
    expect(problemsOf({ PRIVATE_HOSTS })).toBe(
      'PRIVATE_HOSTS must be names, addresses or networks, separated by commas',
    );
  });
});
