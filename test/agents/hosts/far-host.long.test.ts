import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { request, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createBackend } from '../../../api/backend/backend.js';
import { BackendClient } from '../../../api/web/backend-client.js';
import { createWeb } from '../../../api/web/web.js';
import { DockerHost } from '../../../src/docker/containers/docker-host.js';
import { createApiServices } from '../../../src/services.js';
import { HeartbeatSchedules } from '../../../temporal/heartbeat-schedules.js';
import { TemporalTraceHistories } from '../../../temporal/trace-histories.js';
import { serveHost } from '../../../worker/serve-host.js';
import { freePort } from '../../../dev/ports.js';
import { until } from '../../support/until.js';
import { allEvents, call, eventsOf, send } from '../../support/http.js';
import { workspaceHelper } from '../../support/workspace-helper.js';
import { testPlatform, type TestPlatform, type TestUser } from '../../support/platform.js';

let platform: TestPlatform;
let ada: TestUser;
let agentId: string;
let port: number;
/** URLs of API processes next to a different host. */
let webUrl: string;
let backendUrl: string;
/** URL of an API process whose own host has no working Docker. */
let bareUrl: string;
const ends: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  port = await freePort();
  platform = await testPlatform({ env: { HOST_LISTEN: `127.0.0.1:${port}` } });
  ada = await platform.signUp('network');
  agentId = await platform.runningAgent(ada, { model: 'gpt-4' });
  ({ backendUrl, webUrl } = await startFarApi(platform.dockerHost));
  const away = new DockerHost({ dockerHost: 'unix:///nowhere/docker.sock' });
  ({ backendUrl: bareUrl } = await startFarApi(away));
});
afterAll(async () => {
  for (const end of ends.reverse()) await end();
  await platform?.close();
});

async function startFarApi(docker: DockerHost) {
  const { db: database, log, supervisors, temporal } = platform;
  const dataDir = await mkdtemp(path.join(tmpdir(), 'aps-journal-'));
  ends.push(() => rm(dataDir, { recursive: true }));
  const settings = {
    ...platform.settings,
    agents: { ...platform.settings.agents, host: 'elsewhere' },
    process: { ...platform.settings.process, dataDir },
  };
  const heartbeatSchedules = new HeartbeatSchedules(temporal.client);
  const foundation = { settings, database, docker, log, supervisors, heartbeatSchedules };
  const services = createApiServices(foundation);
  ends.push(() => services.ai.close());
  const traceHistories = new TemporalTraceHistories(temporal.client, undefined);
  const parts = { ...services, settings, database, docker, log, traceHistories };
  const backend = await createBackend(parts).listen('127.0.0.1', 0);
  ends.push(backend.close);
  const client = new BackendClient(backend.url, settings.http.internalApiKey);
  const web = await createWeb({ ...parts, backend: client }).listen('127.0.0.1', 0);
  ends.push(web.close);
  return { backendUrl: backend.url, webUrl: web.url };
}

const headers = () => ({ authorization: `Bearer ${platform.internalKey}` });
const backend = (path: string) => call(backendUrl, 'GET', path, { headers: headers() });
const ask = (message: string, conversation = 'far') =>
  call(webUrl, 'POST', '/api/chat', {
    headers: { cookie: ada.cookie },
    body: { agentId, message, conversation },
  });

test.each([
  ['has reported its address, but does not listen', ''],
  ['has not said where it listens', `UPDATE hosts SET url = NULL`],
])('answers 503 for an agent whose host %s, without calling the agent down', async (_, change) => {
  if (change) await platform.asOwner(change);
  const answers = await Promise.all([
    ask('hello', 'nobody hears'),
    backend(`/api/logs/${agentId}/history`),
    backend(`/api/agents/${agentId}/stats`),
  ]);
  for (const answer of answers) {
    expect([answer.status, answer.body.error]).toEqual([
      503,
      "The agent's host cannot be reached from here: retry later",
    ]);
  }
  const instances = await backend('/api/runtime/instances');
  expect(instances.body.unreachable).toEqual(['local']);
});

test('creates and operates an agent on a host with Docker when the API has none', async () => {
  const asAda = (method: string, path: string, body: unknown = {}) =>
    call(bareUrl, method, path, { headers: { ...headers(), 'x-user-id': ada.id }, body });
  const made = await asAda('POST', '/api/agents', { name: 'far away' });
  expect([made.status, made.body.error]).toEqual([201, undefined]);
  const { id } = made.body;
  await platform.becomes(id, 'active');
  const restarted = await asAda('POST', `/api/agents/${id}/restart?wait=60`);
  expect([restarted.status, restarted.body.status]).toEqual([202, 'succeeded']);

  const verified = await asAda('POST', `/api/agents/${id}/verify`);
  expect([verified.status, verified.body.verified, verified.body.checks]).toEqual([
    200,
    true,
    expect.arrayContaining([expect.objectContaining({ name: 'gateway', ok: true })]),
  ]);

  // Changes the host's row: its engine is unavailable, then its worker stops reporting.
  const changed = async (change: string) => {
    await platform.asOwner(`UPDATE hosts SET ${change} WHERE id = 'local'`);
    expect((await asAda('POST', `/api/agents/${id}/verify`)).status).toBe(503);
    return asAda('POST', `/api/agents/${id}/stop`);
  };
  const down = await changed(`engine_available = false`);
  expect([down.status, down.body.error]).toEqual([500, 'Docker is not available']);
  const silent = await changed(`seen_at = now() - interval '50 seconds'`);
  expect([silent.status, silent.body.error]).toEqual([
    503,
    expect.stringContaining('is not reporting'),
  ]);
  await platform.reportHost();
  expect((await asAda('DELETE', `/api/agents/${id}`)).status).toBe(200);
});

describe('access to an agent on a listening host', () => {
  beforeAll(async () => {
    const { db: database, dockerHost: docker, log, settings } = platform;
    const stop = new AbortController();
    const lease = { held: () => Promise.resolve() };
    const host = { settings, database, docker, lease, log, helper: workspaceHelper };
    const serving = serveHost(host, stop.signal);
    ends.push(() => {
      stop.abort();
      return serving;
    });
    await until(async () => {
      const { body } = await backend('/api/runtime/instances');
      return body.unreachable.length === 0;
    });
  });

  test("serves the agent's own address", async () => {
    const { body } = await platform.backend(ada, 'GET', `/api/agents/${agentId}`);
    const { port } = new URL(webUrl);
    const headers = { host: new URL(body.url).host };
    const asking = request({ host: '127.0.0.1', port, path: '/healthz', headers }).end();
    const [answer] = (await once(asking, 'response')) as [IncomingMessage];
    expect([answer.statusCode, await text(answer)]).toEqual([200, '{"ok":true,"status":"live"}']);
  });

  test('sends chat messages to the agent and stores its answers', async () => {
    const answer = await ask('hello');
    expect([answer.status, answer.body.message?.content]).toEqual([200, 'said: hello']);
    const streamed = await send(webUrl, 'POST', '/api/chat', {
      headers: { cookie: ada.cookie, accept: 'text/event-stream' },
      body: { agentId, message: 'again '.repeat(20), conversation: 'far' },
    });
    const events = await allEvents(streamed);
    expect(events.filter(({ event }) => event === 'delta').length).toBeGreaterThan(1);
    expect(events.at(-1)?.event).toBe('done');
    const kept = await platform.web(ada, 'GET', `/api/chat?agentId=${agentId}&conversation=far`);
    expect(kept.body.messages.map(({ status }: { status: string }) => status)).toEqual(
      Array(4).fill('complete'),
    );
  });

  test('reads and writes files of an agent on another host', async () => {
    const content = '\u0001größe\n'.repeat(50_000);
    const written = await call(webUrl, 'POST', '/api/browse/write', {
      headers: { cookie: ada.cookie },
      body: { agentId, path: 'far.txt', content },
    });
    expect([written.status, written.body.size]).toEqual([200, Buffer.byteLength(content)]);
    const read = (path: string) =>
      call(webUrl, 'GET', `/api/browse/read?agentId=${agentId}&path=${path}`, {
        headers: { cookie: ada.cookie },
      });
    expect((await read('far.txt')).body.content).toBe(content);
    const missing = await read('missing');
    expect([missing.status, missing.body.error]).toEqual([404, 'File not found']);
  });

  test('lists, finds and changes the memory of an agent on another host', async () => {
    const options = { headers: { cookie: ada.cookie } };
    const store = (body: object) =>
      call(webUrl, 'POST', '/api/memory', {
        ...options,
        body: { agentId, path: 'MEMORY.md', ...body },
      });
    const { body: first } = await store({ content: 'likes tea' });
    const { etag } = first;
    const answers = [await store({ content: 'likes coffee', mode: 'replace', etag })];
    answers.push(await store({ content: 'likes milk', mode: 'replace', etag }));
    expect(answers.map(({ status }) => status)).toEqual([201, 409]);
    const get = async (query: string) =>
      (await call(webUrl, 'GET', `/api/memory?agentId=${agentId}${query}`, options)).body;
    expect((await get('')).files).toMatchObject([{ path: 'MEMORY.md', size: 12 }]);
    expect((await get('&q=COFFEE')).matches).toEqual([
      { path: 'MEMORY.md', line: 1, text: 'likes coffee' },
    ]);
    expect((await get('&path=MEMORY.md')).etag).toBe(answers[0]?.body.etag);
  });

  test('reads the log of an agent on another host page by page and live', async () => {
    await platform.orderAgent(agentId, { print: { lines: 3, text: 'far', stream: 'stdout' } });
    const path = `/api/logs/${agentId}/history?limit=2`;
    const lines = await until(async () => {
      const { body } = await backend(path);
      return body.lines?.[1]?.line === 'far 3' && body;
    });
    const following = await send(
      backendUrl,
      'GET',
      `/api/logs/${agentId}/stream?cursor=${lines.cursor}`,
      { headers: headers() },
    );
    expect(following.status).toBe(200);
    await platform.orderAgent(agentId, { print: { lines: 2, text: 'more', stream: 'stderr' } });
    const seen: string[] = [];
    for await (const { data } of eventsOf(following)) {
      seen.push(data.line);
      if (seen.length === 2) break;
    }
    expect(seen).toEqual(['more 1', 'more 2']);
    expect((await backend(`/api/logs/${agentId}/history?cursor=nonsense`)).status).toBe(400);
  });

  test('lists agents of another host with their resource usage', async () => {
    const stats = await backend(`/api/agents/${agentId}/stats`);
    expect(stats.body.container.memoryBytes).toBeGreaterThan(0);
    const { body } = await backend('/api/runtime/instances?stats=true');
    expect(body.unreachable).toEqual([]);
    expect(body.instances).toMatchObject([{ id: agentId, status: 'running' }]);
    expect(body.instances[0].stats.processes).toBeGreaterThan(0);
    const mine = await call(webUrl, 'GET', `/api/instance/${ada.id}/stats`, {
      headers: { cookie: ada.cookie },
    });
    expect(mine.body.running).toBe(1);
  });
});
