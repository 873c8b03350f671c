import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { createBackend } from '../../../api/backend/backend.js';
import type { Listening } from '../../../api/http/server.js';
import { reportHost, type HostReport } from '../../../src/agents/hosts/hosts.js';
import { queryRows } from '../../platform/database/catalog.js';
import { insertSql, ROWS } from '../../platform/database/rows.js';
import { databaseAlone } from '../../support/dependencies.js';
import { call } from '../../support/http.js';
import { keptLog } from '../../support/platform-environment.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';

/* An API process that uses no engine of its own, as in production without AGENT_HOST. */

const KEY = 'the internal key of these tests';
const NO_DOCKER = { status: 500, error: 'Docker is not available' };

let database: TestDatabase;
let alone: Awaited<ReturnType<typeof databaseAlone>>;
let backend: Listening;
let kept: ReturnType<typeof keptLog>;
const user = randomUUID();

beforeAll(async () => {
  database = await testDatabase();
  await asOwner(insertSql('users', ROWS.users!(user, 1)));
  await asOwner(insertSql('subscriptions', ROWS.subscriptions!(user, 1)));
});
beforeEach(async () => {
  // The state of the engines is cached for a second, so each test has its own backend.
  const env = { INTERNAL_API_KEY: KEY };
  kept = keptLog();
  alone = await databaseAlone(database, kept.log, env, { engine: false });
  backend = await createBackend(alone.dependencies).listen('127.0.0.1', 0);
});
afterEach(async () => {
  await backend?.close();
  await alone?.close();
  await asOwner('DELETE FROM agents; DELETE FROM hosts');
});
afterAll(() => database?.close());

const asOwner = (sql: string) => queryRows<Record<string, unknown>>(database.ownerUrl, sql);

test('the version of new agents is the one in the name of their image', async () => {
  const version = async (env: Readonly<Record<string, string>>) => {
    const parts = await databaseAlone(
      database,
      kept.log,
      { INTERNAL_API_KEY: KEY, ...env },
      {
        engine: false,
      },
    );
    const listening = await createBackend(parts.dependencies).listen('127.0.0.1', 0);
    try {
      return (await call(listening.url, 'GET', '/api/runtime/version')).body;
    } finally {
      await listening.close();
      await parts.close();
    }
  };
  const digest = `sha256:${'a'.repeat(64)}`;
  const given: readonly (readonly [string, string])[] = [
    ['registry.example:5000/mine/runtime:3.1', '3.1'],
    [`registry.example/mine:3.2@${digest}`, '3.2'],
    [`registry.example/mine@${digest}`, digest],
    ['mine', 'latest'],
  ];
  for (const [image, expected] of given) {
    expect(await version({ AGENT_RUNTIME_IMAGE: image })).toEqual({ version: expected, image });
  }
  expect(await version({ AGENT_RUNTIME_VERSION: '2026.8.4' })).toEqual({
    version: '2026.8.4',
    image: 'ghcr.io/openclaw/openclaw:2026.8.4',
  });
});

const report = (id: string, given: Partial<HostReport> = {}) =>
  reportHost(database.db, {
    id,
    capacity: 9,
    ports: { first: 19_100, last: 19_199 },
    engineAvailable: true,
    ...given,
  });

const silence = (id: string) =>
  asOwner(`UPDATE hosts SET seen_at = seen_at - interval '46 seconds' WHERE id = '${id}'`);

async function ask(method: string, path: string, body?: unknown) {
  const headers = { authorization: `Bearer ${KEY}`, 'x-user-id': user };
  const answer = await call(backend.url, method, path, { headers, body });
  return { ...answer, error: { status: answer.status, error: answer.body.error } };
}

const health = async () => {
  const { docker, provisioning, disk } = (await ask('GET', '/health')).body;
  return { docker, provisioning, disk };
};

const AVAILABLE = { docker: 'available', provisioning: 'enabled', disk: null };
const UNAVAILABLE = { docker: 'unavailable', provisioning: 'disabled', disk: null };

test('reports Docker as available as long as a host that reports has it', async () => {
  await report('far', { engineAvailable: false });
  await report('near');
  expect(await health()).toEqual(AVAILABLE);
});

test('reports Docker as unavailable without a host', async () => {
  expect(await health()).toEqual(UNAVAILABLE);
});

test('reports Docker as unavailable if only a silent host has it', async () => {
  await report('far', { engineAvailable: false });
  await report('near');
  await silence('near');
  expect(await health()).toEqual(UNAVAILABLE);
});

test('creates an agent on a host that has reported its Docker, and reads it only through the host', async () => {
  await report('local');
  const made = await ask('POST', '/api/agents', { name: 'far away' });
  expect(made.error).toEqual({ status: 201, error: undefined });
  expect(await asOwner('SELECT host FROM agents')).toEqual([{ host: 'local' }]);
  expect((await ask('GET', `/api/logs/${made.body.id}/history`)).error).toEqual({
    status: 503,
    error: "The agent's host cannot be reached from here: retry later",
  });
  expect(kept.lines.join()).toContain("the host's worker has no address: set HOST_LISTEN for it");
});

test('refuses an agent if no host has reported its Docker', async () => {
  await report('local', { engineAvailable: false });
  expect((await ask('POST', '/api/agents', { name: 'nowhere' })).error).toEqual(NO_DOCKER);
});

test('refuses an agent with the reason if every host is full', async () => {
  await report('local', { capacity: 0 });
  const { status, body } = await ask('POST', '/api/agents', { name: 'nowhere' });
  expect([status, body.error]).toEqual([503, expect.stringContaining('each host is full')]);
});

test('requests the containers of all hosts from their workers, and lists the silent hosts', async () => {
  expect((await ask('GET', '/api/runtime/instances')).error).toEqual(NO_DOCKER);
  await report('local');
  const { status, body } = await ask('GET', '/api/runtime/instances');
  expect([status, body.unreachable]).toEqual([200, ['local']]);
});
