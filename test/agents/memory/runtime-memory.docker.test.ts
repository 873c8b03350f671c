// @module-tag attack
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { utcDay } from '../../../src/lib/utc-day.js';
import { containerName, spareNames } from '../../../src/docker/containers/container-spec.js';
import { call, type Answer } from '../../support/http.js';
import { testPlatform, type TestPlatform, type TestUser } from '../../support/platform.js';
import { runInContainer } from '../../support/run-in-container.js';
import { REFUSED } from '../../workspace/refused-paths.js';

const FOLDER = '/home/node/.openclaw/workspace';

let platform: TestPlatform;
let ada: TestUser;
let bob: TestUser;
let agentId: string;

beforeAll(async () => {
  platform = await testPlatform({ disk: { floor: 0, volume: 64 * 1024 ** 2 } });
  [ada, bob] = await Promise.all([platform.signUp('network'), platform.signUp('network')]);
  agentId = await platform.runningAgent(ada, { model: 'gpt-4' });
});
afterAll(async () => {
  await platform?.dockerHost.workspaces.close();
  await platform?.close();
});

const get = (query: Readonly<Record<string, string>> = {}, user: TestUser | undefined = ada) =>
  platform.web(user, 'GET', `/api/memory?${new URLSearchParams({ agentId, ...query }).toString()}`);
const post = (body: object, user: TestUser | undefined = ada) =>
  platform.web(user, 'POST', '/api/memory', { body: { agentId, ...body } });
const inAgent = (script: string) => runInContainer(platform.docker, containerName(agentId), script);
const reported = ({ body, status }: Answer) => `${status} ${body.error ?? 'well'}`;

/** Returns the changes of the memory in the audit log. */
const audited = () =>
  platform.db.asPlatform().query<{ actor: string; detail: object }>(
    `SELECT actor, detail FROM audit_log WHERE action = 'memory.write' AND subject = $agentId
      ORDER BY id`,
    { agentId },
  );

test('a remembered line is in the file of the day, which the agent reads', async () => {
  expect((await get()).body).toEqual({ agentId, files: [] });
  const stored = await post({ content: 'Ada likes tea\n' });
  const path = `memory/${utcDay()}.md`;
  const file = {
    path,
    size: 14,
    modified: expect.any(String),
    etag: expect.stringMatching(/^[\w-]{43}$/),
  };
  expect([stored.status, stored.body]).toEqual([201, { agentId, ...file }]);
  const seen = await inAgent(
    `process.stdout.write(require('fs').readFileSync('${FOLDER}/${path}', 'utf8'))`,
  );
  expect(seen).toBe('Ada likes tea\n');
  await inAgent(`require('fs').appendFileSync('${FOLDER}/${path}', 'by the agent')`);
  const read = (await get({ path })).body;
  expect(read).toEqual({ agentId, ...file, size: 26, content: 'Ada likes tea\nby the agent' });
  expect((await get()).body).toEqual({ agentId, files: [{ ...file, size: 26, etag: read.etag }] });
  expect((await get({ q: 'THE AGENT' })).body).toEqual({
    agentId,
    query: 'THE AGENT',
    matches: [{ path, line: 2, text: 'by the agent' }],
  });
});

test('a replacement needs the etag of the file, if it names one', async () => {
  const first = await post({ path: 'MEMORY.md', content: 'one', mode: 'replace' });
  const { etag } = first.body;
  const changed = await post({ path: 'MEMORY.md', content: 'two', mode: 'replace', etag });
  expect([first.status, changed.status, changed.body.size]).toEqual([201, 201, 3]);
  const late = await post({ path: 'MEMORY.md', content: 'three', mode: 'replace', etag });
  expect([late.status, late.body.code]).toEqual([409, 'FILE_CHANGED']);
  expect((await get({ path: 'MEMORY.md' })).body.content).toBe('two');
});

test('each change is audited with its path and size, and a refused one is not', async () => {
  const before = (await audited()).length;
  await post({ path: 'USER.md', content: 'größe' });
  await post({ path: 'USER.md', content: 'x', etag: 'another' });
  await post({ path: 'notes.md', content: 'x' });
  expect((await audited()).slice(before)).toEqual([
    { actor: ada.id, detail: { path: 'USER.md', size: 7, mode: 'append' } },
  ]);
});

test('a repeated request with the same key appends once', async () => {
  const request = {
    body: { agentId, path: 'SOUL.md', content: 'once' },
    headers: { 'idempotency-key': randomUUID() },
  };
  const answers = [
    await platform.web(ada, 'POST', '/api/memory', request),
    await platform.web(ada, 'POST', '/api/memory', request),
  ];
  expect(answers.map(({ status }) => status)).toEqual([201, 201]);
  expect(answers[1]?.body).toEqual(answers[0]?.body);
  expect((await get({ path: 'SOUL.md' })).body.content).toBe('once');
});

test('invalid requests are a 400 that names the field', async () => {
  const answers = [
    await get({ path: 'MEMORY.md', q: 'tea' }),
    await get({ path: 'openclaw.json' }),
    await get({ q: '' }),
    await platform.web(ada, 'GET', '/api/memory'),
    await post({}),
    await post({ content: 'a', mode: 'prepend' }),
    await post({ content: 'a'.repeat(65_537) }),
    await post({ content: 'é'.repeat(32_769) }),
    await post({ content: '\ud800' }),
    await post({ content: 'a', path: '../MEMORY.md' }),
  ];
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 400));
  const fields = ['path', 'path', 'q', 'agentId', 'content', 'mode', 'content', 'content'];
  // Ill-formed text is refused with the whole body.
  for (const [index, field] of [...fields, 'body', 'path'].entries()) {
    expect(answers[index]?.body.error).toContain(field);
  }
  expect((await post({ content: 'é'.repeat(32_768), path: 'memory/most.md' })).status).toBe(201);
  expect(reported(await get({ path: 'memory/missing.md' }))).toBe('404 File not found');
});

test("the explorer's refused paths are refused for reads and writes", async () => {
  // Lone surrogates do not survive a query; the web API's limit of an address admits some of the rest.
  const paths = REFUSED.filter((each) => !/\p{Surrogate}/u.test(each) && each.length < 200);
  const backend = async (path: string) => [
    await platform.backend(
      ada,
      'GET',
      `/api/memory?${new URLSearchParams({ agentId, path }).toString()}`,
    ),
    await platform.backend(ada, 'POST', '/api/memory', { body: { agentId, path, content: 'x' } }),
  ];
  for (const path of paths.filter((_, each) => each % 3 === 0)) {
    const statuses = (await backend(path)).map(({ status }) => status);
    expect([path, ...statuses]).toEqual([path, 400, 400]);
  }
});

test('links made by the agent are not followed', async () => {
  await inAgent(`
    const fs = require('fs');
    fs.symlinkSync('/etc/passwd', '${FOLDER}/memory/passwd.md');
    fs.symlinkSync('../..', '${FOLDER}/memory/up');
  `);
  const answers = [
    await get({ path: 'memory/passwd.md' }),
    await get({ path: 'memory/up/openclaw.md' }),
    await post({ path: 'memory/passwd.md', content: 'x' }),
    await post({ path: 'memory/up/made.md', content: 'x' }),
  ];
  expect(answers.map(({ status }) => status)).toEqual([400, 400, 400, 400]);
  expect(JSON.stringify((await get()).body)).not.toMatch(/passwd|up\//);
});

test('other users, and keys without the scope of files, learn and change nothing', async () => {
  const others = [await get({}, bob), await get({ path: 'MEMORY.md' }, bob)];
  others.push(await post({ path: 'MEMORY.md', content: 'of bob' }, bob));
  expect(others.map(reported)).toEqual(others.map(() => '404 Agent not found'));
  expect(reported(await platform.web(undefined, 'GET', `/api/memory?agentId=${agentId}`))).toBe(
    '401 Unauthorized',
  );
  const keyOf = async (scopes: readonly string[]) => {
    const made = await platform.web(ada, 'POST', '/api/keys', { body: { name: 'k', scopes } });
    return { authorization: `Bearer ${made.body.key}` };
  };
  const url = `/api/memory?agentId=${agentId}&path=MEMORY.md`;
  const refused = await call(platform.webUrl, 'GET', url, { headers: await keyOf(['agents']) });
  expect([refused.status, refused.body.code]).toEqual([403, 'SCOPE_REQUIRED']);
  const admitted = await call(platform.webUrl, 'GET', url, { headers: await keyOf(['files']) });
  expect([admitted.status, admitted.body.content]).toEqual([200, 'two']);
});

test('more than eight concurrent requests are refused, including those of the explorer', async () => {
  await get();
  // A paused helper keeps eight requests in flight while the others are refused.
  const helper = platform.docker.getContainer(spareNames(agentId).files);
  await helper.pause();
  const statuses: number[] = [];
  const requests = Array.from({ length: 20 }, async (_, each) => {
    const explorer = `/api/browse/tree?agentId=${agentId}`;
    const { status } = await (each % 2 === 0 ? get() : platform.web(ada, 'GET', explorer));
    statuses.push(status);
  });
  try {
    await expect.poll(() => statuses).toEqual(Array(12).fill(429));
  } finally {
    await helper.unpause();
  }
  await Promise.all(requests);
  expect(statuses.slice(12)).toEqual(Array(8).fill(200));
});

test('the memory of a stopped agent is read and changed, and read again after the start', async () => {
  await platform.backend(ada, 'POST', `/api/agents/${agentId}/stop?wait=60`);
  await platform.becomes(agentId, 'stopped');
  await platform.dockerHost.workspaces.close();
  expect((await get({ path: 'MEMORY.md' })).body.content).toBe('two');
  expect((await post({ path: 'MEMORY.md', content: '\nwhile it rests' })).status).toBe(201);
  await platform.backend(ada, 'POST', `/api/agents/${agentId}/start?wait=60`);
  await platform.becomes(agentId, 'active');
  expect(
    await inAgent(
      `process.stdout.write(require('fs').readFileSync('${FOLDER}/MEMORY.md', 'utf8'))`,
    ),
  ).toBe('two\nwhile it rests');
});

test('requests are a 409 while the memory is replaced, and writes while it is full', async () => {
  const id = randomUUID();
  await platform.asOwner(`INSERT INTO operations (id, agent_id, user_id, kind)
    VALUES ('${id}', '${agentId}', '${ada.id}', 'reset-memory')`);
  const busy = [await get(), await get({ q: 'tea' }), await post({ content: 'x' })];
  expect(busy.map(({ body, status }) => [status, body.code])).toEqual(
    busy.map(() => [409, 'MEMORY_BUSY']),
  );
  await platform.asOwner(`DELETE FROM operations WHERE id = '${id}'`);
  await platform.asOwner(
    `UPDATE agent_volumes SET bytes = 1e15, measured_at = now() WHERE agent_id = '${agentId}'`,
  );
  const full = [await post({ content: 'x' }), await post({ content: 'x', mode: 'replace' })];
  expect(full.map(({ body, status }) => [status, body.code])).toEqual(
    full.map(() => [409, 'MEMORY_FULL']),
  );
  expect((await get()).status).toBe(200);
});
