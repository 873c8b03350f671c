import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { HostAccess } from '../../../src/agents/hosts/host-access.js';
import { HostListener } from '../../../src/agents/hosts/host-listener.js';
import { HostUnreachableError, RemoteHost } from '../../../src/agents/hosts/remote-host.js';
import { LOOPBACK_NAMES } from '../../../src/platform/http/own-hosts.js';
import { SettingsError } from '../../../src/platform/environment/settings-error.js';
import { loadSettings } from '../../../src/settings.js';
import { keptLog, testEnvironment } from '../../support/platform-environment.js';
import { testSecrets } from '../../support/secrets.js';
import { CERTIFICATE, CERTIFICATE_KEY } from '../../workspace/certificate.js';
import { HOST_CERTIFICATE, HOST_CERTIFICATE_KEY } from './certificate.js';

const secrets = testSecrets();
const { log } = keptLog();
const echo = createServer((socket) => void socket.pipe(socket));
let listener: HostListener;
let url: string;

beforeAll(async () => {
  await new Promise<void>((resolve) => echo.listen(0, '127.0.0.1', resolve));
  // A TCP address is never a string.
  const { port } = echo.address() as AddressInfo;
  const host: Pick<HostAccess, 'connect' | 'stats'> = {
    stats: () => Promise.resolve(null),
    async connect() {
      const socket = connect(port, '127.0.0.1');
      await once(socket, 'connect');
      return socket;
    },
  };
  listener = new HostListener({
    id: 'far',
    // Only the parts that this test uses.
    host: host as HostAccess,
    secrets,
    names: new Set(LOOPBACK_NAMES),
    agentsNetwork: '10.231.0.0/16',
    tls: { cert: HOST_CERTIFICATE, key: HOST_CERTIFICATE_KEY },
    log,
  });
  url = `https://127.0.0.1:${await listener.listen('127.0.0.1', 0)}`;
});
afterAll(async () => {
  await listener?.close();
  echo.close();
});

const remote = (ca: string | undefined, at = url) =>
  new RemoteHost({ id: 'far', url: at, ca, secrets, log });

const AGENT = { agentId: 'a', userId: 'u', host: 'far' };

test('calls a host and connects to a gateway through TLS', async () => {
  const host = remote(HOST_CERTIFICATE);
  expect(await host.stats('a')).toBeNull();
  const socket = await host.connect(AGENT);
  socket.write('hello');
  const [piece] = await once(socket, 'data');
  expect(String(piece)).toBe('hello');
  socket.destroy();
});

test.each([
  ['its certificate is of another authority', CERTIFICATE, () => url],
  ['no authority is named', undefined, () => url],
  ['it is called without TLS', HOST_CERTIFICATE, () => url.replace('https:', 'http:')],
])('reaches no host if %s', { tags: 'attack' }, async (_, ca, at) => {
  const host = remote(ca, at());
  await expect(host.stats('a')).rejects.toThrow(HostUnreachableError);
  await expect(host.connect(AGENT)).rejects.toThrow(HostUnreachableError);
});

const TLS = { HOST_TLS_CERT: HOST_CERTIFICATE, HOST_TLS_KEY: HOST_CERTIFICATE_KEY };

function hostsOf(env: Readonly<Record<string, string>>) {
  const { hosts } = loadSettings(
    testEnvironment({ DATABASE_URL: 'postgres://a@localhost/b' }, env),
  );
  return hosts;
}

function problemsOf(env: Readonly<Record<string, string>>): readonly string[] {
  try {
    hostsOf(env);
    return [];
  } catch (error) {
    if (error instanceof SettingsError) return error.problems;
    throw error;
  }
}

test('reads certificate and key, and names the address with https', () => {
  const env = { ...TLS, HOST_TLS_CA: HOST_CERTIFICATE, HOST_LISTEN: '10.0.0.7:3003' };
  const { ca, listener: at } = hostsOf(env);
  expect(ca).toContain('BEGIN CERTIFICATE');
  expect(at).toMatchObject({ url: 'https://10.0.0.7:3003', tls: { cert: expect.any(String) } });
});

test.each([
  [{ HOST_TLS_CERT: HOST_CERTIFICATE }, 'HOST_TLS_CERT and HOST_TLS_KEY must be set together'],
  [{ ...TLS, HOST_TLS_KEY: CERTIFICATE_KEY }, 'HOST_TLS_KEY must be the key of HOST_TLS_CERT'],
  [{ ...TLS, HOST_TLS_CERT: 'none' }, 'HOST_TLS_CERT must be a certificate as PEM'],
  [
    { ...TLS, HOST_URL: 'http://worker:3003' },
    'HOST_URL must start with https://, because HOST_TLS_CERT makes the worker use TLS',
  ],
])('refuses TLS that cannot work: %j', (env, problem) => {
  expect(problemsOf(env)).toEqual([problem]);
});
