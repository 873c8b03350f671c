import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer as createHttpServer } from 'node:http';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { examine } from '../../src/doctor/check.js';
import { dockerCheck, poolFinding } from '../../src/doctor/docker-check.js';
import { sendJson } from '../support/provider-stub.js';

/** Answers of an engine by path. */
const ANSWERS: Readonly<Record<string, unknown>> = {
  '/version': { Version: '28.1.0' },
  '/info': {
    ID: 'one',
    MemTotal: 2 ** 33,
    Runtimes: { runc: {} },
    KernelVersion: '6.1',
    DockerRootDir: '/',
  },
  '/networks': [{ Name: 'bridge', IPAM: { Config: [{ Subnet: '172.17.0.0/16' }] } }],
};

const engine = () =>
  createHttpServer((request, response) => {
    const answer = ANSWERS[request.url?.split('?')[0] ?? ''];
    sendJson(response, answer ? 200 : 404, answer ?? { message: 'no such path' });
  });

async function socketOf(server: Server): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'aps-engine-'));
  const socket = path.join(folder, 'engine.sock');
  server.listen(socket);
  await once(server, 'listening');
  onTestFinished(async () => {
    server.close();
    await rm(folder, { recursive: true, force: true });
  });
  return `unix://${socket}`;
}

async function findingsOf(host: string, env: Readonly<Record<string, string>> = {}) {
  const findings = await examine([dockerCheck], {
    DOCKER_HOST: host,
    ENCRYPTION_KEY: Buffer.alloc(32).toString('base64'),
    AGENT_HOST_DISK_FLOOR: '1m',
    ...env,
  });
  return findings.map(({ status, text }) => `${status}: ${text}`);
}

test('names the version, the free disk space and the free networks', async () => {
  const host = await socketOf(engine());
  expect(await findingsOf(host)).toEqual([
    `ok: Docker 28.1.0 answers at ${host}.`,
    expect.stringMatching(/^ok: The disk of Docker's volumes has [\d.]+ GB free\.$/),
    expect.stringMatching(/^ok: \d+ of 4096 networks of AGENT_SUBNET_POOL \(10\.231\.0\.0\/16\)/),
  ]);
});

test('names a disk below its floor and a missing runtime', async () => {
  const wrong = { AGENT_HOST_DISK_FLOOR: '900000g', AGENT_CONTAINER_RUNTIME: 'runsc' };
  const findings = await findingsOf(await socketOf(engine()), wrong);
  expect(findings).toContainEqual(
    expect.stringMatching(/^failure: Docker lacks the runtime "runsc" of AGENT_CONTAINER_RUNTIME/),
  );
  expect(findings).toContainEqual(
    expect.stringMatching(/^failure: The disk .* less than AGENT_HOST_DISK_FLOOR \(\d/),
  );
});

test('names an engine that does not run', async () => {
  expect(await findingsOf('unix:///nothing/docker.sock')).toEqual([
    'failure: Docker at unix:///nothing/docker.sock: The container engine cannot be reached (ENOENT). ' +
      'Start it, or correct DOCKER_HOST.',
  ]);
});

test('warns of an engine that an API process of production does not need', async () => {
  const digest = `@sha256:${'a'.repeat(64)}`;
  const env = {
    NODE_ENV: 'production',
    AGENT_RUNTIME_IMAGE: `runtime.example/agent${digest}`,
    AGENT_EGRESS_IMAGE: `runtime.example/helper${digest}`,
  };
  expect(await findingsOf('unix:///nothing/docker.sock', env)).toEqual([
    expect.stringMatching(/^warning: Docker at .* if a worker runs here\.$/),
  ]);
  expect(
    await findingsOf('unix:///nothing/docker.sock', { ...env, AGENT_HOST: 'one' }),
  ).toMatchObject([expect.stringMatching(/^failure: Docker at/)]);
});

test('names an engine that accepts connections and never answers', async () => {
  const host = await socketOf(createServer((socket) => void socket.on('error', () => undefined)));
  expect(await findingsOf(host)).toEqual([
    expect.stringContaining('The container engine did not answer in 4000 ms'),
  ]);
});

test.each([
  ['ok', '4095', ['10.231.0.16/28', '10.231.0.16/30', '172.17.0.0/16']],
  [
    'warning',
    '32',
    [
      '10.231.0.0/17',
      '10.231.128.0/18',
      '10.231.192.0/19',
      '10.231.224.0/20',
      '10.231.240.0/21',
      '10.231.248.0/22',
      '10.231.252.0/23',
    ],
  ],
  ['failure', '0', ['10.0.0.0/8']],
])('reports a pool as %s with %s free networks', (status, free, taken) => {
  const finding = poolFinding('10.231.0.0/16', taken);
  expect(finding).toMatchObject({ status, text: expect.stringMatching(new RegExp(`^${free} of`)) });
});
