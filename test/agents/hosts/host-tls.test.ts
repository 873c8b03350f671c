import { once } from 'node:events';
import { createServer } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { HostUnreachableError, RemoteHost } from '../../../src/agents/hosts/remote-host.js';
import { SettingsError } from '../../../src/platform/environment/settings-error.js';
import { loadSettings } from '../../../src/settings.js';
import { testEnvironment } from '../../support/platform-environment.js';
import { CERTIFICATE, CERTIFICATE_KEY } from '../../workspace/certificate.js';
import { HOST_CERTIFICATE, HOST_CERTIFICATE_KEY } from './certificate.js';
import { FarHost, gatewayAt } from './far-host.js';

const far = new FarHost();
const { log, secrets } = far;
const echo = createServer((socket) => void socket.pipe(socket));

beforeAll(async () => {
  const connect = await gatewayAt(echo);
  const tls = { cert: HOST_CERTIFICATE, key: HOST_CERTIFICATE_KEY };
  await far.listen({ stats: () => Promise.resolve(null), connect }, tls);
});
afterAll(async () => {
  await far.close();
  echo.close();
});

const remote = (ca: string | undefined, at = far.url) =>
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
  ['its certificate is of another authority', CERTIFICATE, () => far.url],
  ['no authority is named', undefined, () => far.url],
  ['it is called without TLS', HOST_CERTIFICATE, () => far.url.replace('https:', 'http:')],
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
