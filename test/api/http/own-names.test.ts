// @module-tag attack
import { request } from 'node:http';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createBackend } from '../../../api/backend/backend.js';
import { createContainersListener } from '../../../api/containers/containers.js';
import type { Listening } from '../../../api/http/server.js';
import { createWeb } from '../../../api/web/web.js';
import { createAgentBus } from '../../../src/agent-ai-services.js';
import { AgentCallerLookup } from '../../../src/agents/credentials/agent-caller-lookup.js';
import { HostListener } from '../../../src/agents/hosts/host-listener.js';
import { LocalHost } from '../../../src/agents/hosts/local-host.js';
import { serveOperators } from '../../../src/platform/operators/operators-listener.js';
import { ProcessMetrics } from '../../../src/platform/operators/process-metrics.js';
import { Readiness } from '../../../src/platform/operators/readiness.js';
import { NO_EXCEPTIONS } from '../../../src/platform/outbound/reachable.js';
import { loadSettings } from '../../../src/settings.js';
import { queryRows } from '../../platform/database/catalog.js';
import { databaseAlone } from '../../support/dependencies.js';
import { testEnvironment } from '../../support/platform-environment.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';

let database: TestDatabase;
let alone: Awaited<ReturnType<typeof databaseAlone>>;
/** Ports of the listeners, each bound to all addresses of the machine. */
const ports: Record<string, number> = {};
const listening: Pick<Listening, 'close'>[] = [];

beforeAll(async () => {
  database = await testDatabase();
  alone = await databaseAlone(database);
  const { dependencies } = alone;
  const { database: db, docker, log, secrets } = dependencies;
  const { http } = loadSettings(
    testEnvironment({
      DATABASE_URL: database.url,
      WEB_URL: 'https://Portal.example.com:8443',
      BACKEND_URL: 'http://backend.internal:3001',
      ALLOWED_HOSTS: 'metrics.internal, 203.0.113.7',
    }),
  );
  const settings = { ...dependencies.settings, http };
  const parts = { ...dependencies, settings };
  const listeners = {
    web: createWeb(parts),
    backend: createBackend(parts),
    agents: createContainersListener({
      ...parts,
      ...createAgentBus(parts),
      agentCallers: new AgentCallerLookup(db, settings.accounts),
    }),
  };
  for (const [name, listener] of Object.entries(listeners)) {
    const opened = await listener.listen('0.0.0.0', 0);
    listening.push(opened);
    ports[name] = opened.port;
  }
  const operators = await serveOperators({
    host: '0.0.0.0',
    port: 0,
    variable: 'METRICS_PORT',
    names: http.ownNames,
    metrics: new ProcessMetrics(),
    readiness: new Readiness({}),
    log,
  });
  listening.push(operators);
  ports.operators = Number(new URL(operators.url ?? '').port);
  const host = new LocalHost({
    image: 'none',
    helper: () => Promise.resolve(''),
    allow: NO_EXCEPTIONS,
    id: 'local',
    database: db,
    docker,
    secrets,
  });
  const listener = new HostListener({
    id: 'local',
    host,
    secrets,
    log,
    names: http.ownNames,
    agentsNetwork: settings.agents.subnetPool,
  });
  listening.push(listener);
  ports.host = await listener.listen('0.0.0.0', 0);
});
afterAll(async () => {
  await Promise.all(listening.map((each) => each.close()));
  await alone?.close();
  await database?.close();
});

interface Asked {
  readonly host: string;
  readonly address?: string;
  readonly method?: string;
  readonly path?: string;
  readonly body?: unknown;
}

async function ask(listener: string, { address = '127.0.0.1', body, host, ...asked }: Asked) {
  return new Promise<{ status: number; body: string }>((resolve, reject) => {
    const port = ports[listener];
    const headers = { host, 'content-type': 'application/json' };
    const call = request({ host: address, port, headers, agent: false, ...asked }, (response) => {
      let text = '';
      response.on('data', (piece: Buffer) => (text += piece.toString()));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: text }));
    });
    call.on('error', reject);
    call.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

const LISTENERS = ['web', 'backend', 'agents', 'operators', 'host'];

describe.each(LISTENERS)('host names of the listener of %s', (listener) => {
  test.each([
    'rebound.example',
    'rebound.example:3000',
    'localhost.rebound.example',
    '127.0.0.1.rebound.example:3000',
    'rebound.example:80:3000',
    // The host name of an agent.
    // Addresses of other machines.
    '192.0.2.1',
    '[2001:db8::1]:3000',
  ])('refuses the host name "%s" with 421', async (host) => {
    expect((await ask(listener, { host, path: '/health' })).status).toBe(421);
  });

  test.each([
    'localhost',
    'LOCALHOST:80',
    '127.0.0.1:8080',
    '[::1]:3000',
    'portal.example.com',
    'portal.example.com:8443',
    'backend.internal:3001',
    'metrics.internal',
    '203.0.113.7:443',
  ])('accepts the host name "%s"', async (host) => {
    expect((await ask(listener, { host, path: '/health' })).status).not.toBe(421);
  });

  test('accepts the address at which it was reached, and no other', async () => {
    const asked = { host: '127.0.0.2:3000', path: '/health' };
    expect((await ask(listener, { ...asked, address: '127.0.0.2' })).status).not.toBe(421);
    expect((await ask(listener, asked)).status).toBe(421);
  });
});

test("accepts the containers' name for the host on the agents' listener only", async () => {
  const host = 'host.docker.internal:3002';
  expect((await ask('agents', { host, path: '/v1/models' })).status).toBe(401);
  expect((await ask('web', { host, path: '/health' })).status).toBe(421);
});

test('serves the host names of agents only on the web API', async () => {
  const host = 'first-0a1b2c3d.localhost:3000';
  const statuses = await Promise.all(
    LISTENERS.map(async (listener) => (await ask(listener, { host, path: '/health' })).status),
  );
  expect(statuses).toEqual([404, 421, 421, 421, 421]);
});

test('refuses registration through a rebound host name', async () => {
  const host = `rebound.example:${ports.web}`;
  const body = { email: 'eve@example.com', password: 'correct horse battery staple' };
  const refused = await ask('web', { host, method: 'POST', path: '/api/register', body });
  expect([refused.status, JSON.parse(refused.body)]).toEqual([
    421,
    { error: expect.stringContaining('ALLOWED_HOSTS') },
  ]);
  const isEve = `SELECT email FROM users WHERE email = '${body.email}'`;
  expect(await queryRows(database.ownerUrl, isEve)).toEqual([]);
  expect((await ask('backend', { host, path: '/api/ai/chat', method: 'POST' })).status).toBe(421);
});

test('accepts HTTP/1.0 without a Host header, but not HTTP/1.1', async () => {
  const statusOf = (head: string) =>
    new Promise<string>((resolve, reject) => {
      const socket = connect(ports.backend ?? 0, '127.0.0.1', () =>
        socket.write(`${head}\r\n\r\n`),
      );
      socket.once('data', (answer: Buffer) => {
        resolve(answer.toString().split(' ')[1] ?? '');
        socket.destroy();
      });
      socket.once('error', reject);
    });
  expect(await statusOf('GET /health HTTP/1.0')).toBe('200');
  expect(await statusOf('GET /health HTTP/1.1')).toBe('400');
  expect(await statusOf('GET /health HTTP/1.1\r\nHost:')).toBe('421');
  expect(await statusOf('GET /health HTTP/1.0\r\nHost: rebound.example')).toBe('421');
});
