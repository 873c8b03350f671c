import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createBackend } from '../../api/backend/backend.js';
import type { Listening } from '../../api/http/server.js';
import { rollUpUsage } from '../../src/ai/usage/rollups.js';
import type { KeyScope } from '../../src/types/key-scopes.js';
import { makeAgent } from '../money/splits/support.js';
import { makeAccount } from '../support/account.js';
import { databaseAlone } from '../support/dependencies.js';
import { call, newAddress, type CallOptions } from '../support/http.js';
import { testDatabase, type TestDatabase } from '../support/postgres.js';
import { keyOf, mcpClient, resultOf, TOOLS_PATH, type McpClient } from './support.js';

const attack = { tags: 'attack' };
const INTERNAL_KEY = 'the internal key of these tests';
const PUBLIC_URL = 'https://agents.example.com';

let database: TestDatabase;
let alone: Awaited<ReturnType<typeof databaseAlone>>;
let backend: Listening;

/** A user with an agent, a key, and an MCP client that has the key. */
interface Holder extends McpClient {
  readonly id: string;
  readonly agentId: string;
  readonly key: string;
}

let ada: Holder;
let bob: Holder;

beforeAll(async () => {
  database = await testDatabase();
  alone = await databaseAlone(database, undefined, {
    TRUSTED_PROXIES: '127.0.0.1',
    INTERNAL_API_KEY: INTERNAL_KEY,
    BACKEND_PUBLIC_URL: PUBLIC_URL,
  });
  backend = await createBackend(alone.dependencies).listen('127.0.0.1', 0);
  [ada, bob] = [await holder(), await holder()];
});
afterAll(async () => {
  await ada?.close();
  await bob?.close();
  await backend?.close();
  await alone?.close();
  await database?.close();
});

async function holder(): Promise<Holder> {
  const { id } = await makeAccount(database.db);
  const agentId = await makeAgent(database.db, id);
  const { authorization, key } = await keyOf(database.db, id);
  return { id, agentId, key, ...(await mcpClient(backend.url, { authorization })) };
}

const ask = (method: string, path: string, { headers, ...options }: CallOptions = {}) =>
  call(backend.url, method, path, {
    ...options,
    headers: { authorization: `Bearer ${ada.key}`, ...headers },
  });

/** Sends messages of JSON-RPC as they are. */
const post = (body: unknown, options: CallOptions = {}) =>
  ask('POST', TOOLS_PATH, { ...options, body });

const toolCall = (name: string, args: object = {}, id: number | string = 1) => ({
  ...{ jsonrpc: '2.0', id, method: 'tools/call' },
  params: { name, arguments: args },
});

const hostmcp = (path: string) => `/api/hostmcp/${path}`;

describe('tools', () => {
  test("lists a key's own agents to the SDK's client", async () => {
    const listed = await ada.call('agents_list');
    expect(listed).toMatchObject({ isError: false, body: [{ id: ada.agentId }] });
    expect((await bob.call('agents_list')).body).toMatchObject([{ id: bob.agentId }]);
  });

  test('tools have the schemas of their endpoints, and hints', async () => {
    const { tools } = await ada.client.listTools();
    expect(tools.map(({ name }) => name)).toEqual([
      ...['agents_list', 'agents_get', 'agents_create', 'agents_start', 'agents_stop'],
      ...['agents_restart', 'agents_delete', 'agents_logs', 'agents_stats', 'agents_chat'],
      ...['usage_summary', 'tasks_list', 'tasks_create'],
    ]);
    const named = new Map(tools.map((tool) => [tool.name, tool]));
    expect(named.get('agents_list')).toMatchObject({
      inputSchema: {
        properties: { limit: { type: 'integer', maximum: 200 }, cursor: { type: 'string' } },
        additionalProperties: false,
      },
      annotations: { readOnlyHint: true, destructiveHint: false },
    });
    expect(named.get('agents_delete')).toMatchObject({
      inputSchema: { properties: { id: { type: 'string' } }, required: ['id'] },
      annotations: { readOnlyHint: false, destructiveHint: true },
    });
    expect(named.get('agents_chat')?.inputSchema.required?.toSorted()).toEqual(['id', 'message']);
    expect(named.get('agents_chat')?.inputSchema.properties).not.toHaveProperty('stream');
    const listed = await ask('GET', TOOLS_PATH);
    expect(listed.body).toEqual({ tools, count: tools.length });
  });

  test('a list of several pages names the next cursor', async () => {
    await makeAgent(database.db, bob.id);
    const first = await bob.call('agents_list', { limit: 1 });
    const cursor = /cursor (\S+)$/.exec(first.texts[1] ?? '')?.[1];
    const second = await bob.call('agents_list', { limit: '1', cursor });
    const ids = [...first.body, ...second.body].map(({ id }) => id);
    expect(new Set(ids).size).toBe(2);
    expect(second.texts).toHaveLength(1);
  });

  test.each([
    ['agents_get', {}, 'id is required'],
    ['agents_get', { id: 7 }, 'id must be text'],
    ['agents_get', { agentId: 'a' }, 'id is required'],
    ['agents_list', { limit: 1_000 }, 'limit must be'],
    ['agents_list', { limit: { most: 1 } }, 'limit must be text or a number'],
    ['agents_list', { count: 1 }, 'count is not a known field'],
    ['agents_list', { __proto__: 1, constructor: 1 }, 'constructor is not a known field'],
    ['agents_stop', { id: 'a', wait: 61 }, 'wait'],
    ['agents_create', { name: '' }, 'name'],
    ['tasks_create', { id: 'a', name: 'x', message: 'y\0', schedule: '1h' }, 'stored'],
  ])('%s with %j is the error of a tool', async (name, args, reason) => {
    const answer = await post(JSON.stringify(toolCall(name, args)));
    if (answer.status === 400) return expect(answer.body.error.message).toContain(reason);
    const refused = resultOf(answer.body.result);
    expect(refused.isError).toBe(true);
    expect(refused.body.error).toContain(reason);
  });

  test("reach no other user's agents", attack, async () => {
    const id = ada.agentId;
    const own = { name: 'x', message: 'y', schedule: '1h' };
    const tools: readonly (readonly [string, object])[] = [
      ...['get', 'start', 'stop', 'restart', 'logs', 'stats'].map(
        (each) => [`agents_${each}`, { id }] as const,
      ),
      ['agents_chat', { id, message: 'hello' }],
      ['tasks_create', { id, ...own }],
    ];
    for (const [name, args] of tools) {
      const refused = await bob.call(name, { ...args });
      const status = name === 'agents_chat' ? /plan|not found/i : /not found/i;
      expect([name, refused.isError, refused.texts[0]]).toEqual([
        name,
        true,
        expect.stringMatching(status),
      ]);
    }
    // An agent that Bob cannot see counts as deleted already.
    expect((await bob.call('agents_delete', { id })).body).toEqual({ id, deleted: true });
    expect((await bob.call('tasks_list', { id })).body).toEqual({ tasks: [], count: 0 });
    expect((await bob.call('usage_summary')).body).toEqual([]);
    expect((await ada.call('agents_get', { id })).body).toMatchObject({ id, desired: 'running' });
  });

  test.each<readonly [KeyScope, string, KeyScope]>([
    ['ai', 'agents_list', 'agents'],
    ['ai', 'agents_chat', 'agents'],
    ['ai', 'tasks_list', 'agents'],
    ['agents', 'usage_summary', 'ai'],
  ])('a key of the scope %s cannot use %s', attack, async (scope, name, required) => {
    const { authorization } = await keyOf(database.db, ada.id, [scope]);
    const args = name === 'agents_chat' ? { id: ada.agentId, message: 'hello' } : {};
    const answer = await post(toolCall(name, args), { headers: { authorization } });
    const refused = { isError: true, body: { code: 'SCOPE_REQUIRED', required } };
    expect(resultOf(answer.body.result)).toMatchObject(refused);
  });

  test('count in the usage of tools, and are no calls of AI', async () => {
    const eve = await holder();
    for (const id of [eve.agentId, eve.agentId, 'absent']) await eve.call('agents_get', { id });
    await eve.call('tasks_list', { limit: 0 });
    const { meter } = alone.dependencies.ai;
    await meter.flushed();
    const authorization = `Bearer ${INTERNAL_KEY}`;
    const headers = { authorization, 'x-user-id': eve.id };
    const report = async (name: string) =>
      (await ask('GET', `/api/usage/${name}`, { headers })).body;
    expect(await report('tools')).toEqual([
      { tool_name: 'hostmcp/agents_get', calls: 3, successes: 2, avg_ms: expect.any(Number) },
      { tool_name: 'hostmcp/tasks_list', calls: 1, successes: 0, avg_ms: expect.any(Number) },
    ]);
    await rollUpUsage(database.db);
    for (const name of ['summary', 'by-model', 'daily']) expect(await report(name)).toEqual([]);
    await eve.close();
  });

  test('store one record of usage for a request, however many calls it has', async () => {
    const eve = await holder();
    const batch = Array.from({ length: 20 }, (_, id) => toolCall('agents_get', { id: 'x' }, id));
    await ask('POST', '/api/hostmcp/tools', {
      body: batch,
      headers: { authorization: `Bearer ${INTERNAL_KEY}`, 'x-user-id': eve.id },
    });
    await alone.dependencies.ai.meter.flushed();
    const logged = await database.db
      .asPlatform()
      .query<{ tool_calls: number }>('SELECT tool_calls FROM usage_logs WHERE user_id = $id', {
        id: eve.id,
      });
    expect(logged.map((row) => Number(row.tool_calls))).toEqual([20]);
    await eve.close();
  });

  test('a user without a plan can neither create an agent nor chat with one', async () => {
    const created = await ada.call('agents_create', { name: 'Free' });
    expect(created).toMatchObject({ isError: true, body: { code: 'SUBSCRIPTION_REQUIRED' } });
    const asked = await ada.call('agents_chat', { id: ada.agentId, message: 'hello' });
    expect(asked).toMatchObject({ isError: true, body: { code: 'PLAN_REQUIRED' } });
  });

  test('a scheduled task is created and listed', async () => {
    const task = { id: ada.agentId, name: 'News', message: 'Sum up.', schedule: '0 7 * * *' };
    const made = await ada.call('tasks_create', task);
    expect(made.body.task).toMatchObject({ agentId: ada.agentId, name: 'News' });
    const listed = await ada.call('tasks_list', { id: ada.agentId });
    expect(listed.body).toMatchObject({ count: 1, tasks: [{ id: made.body.task.id }] });
  });

  test('the internal key acts for a user, or has access to all agents', async () => {
    const authorization = `Bearer ${INTERNAL_KEY}`;
    const speaking = await mcpClient(backend.url, { authorization, 'x-user-id': bob.id });
    const ids = (await speaking.call('agents_list')).body.map(({ id }: { id: string }) => id);
    expect(ids).not.toContain(ada.agentId);
    const operator = await mcpClient(backend.url, { authorization });
    expect((await operator.call('agents_get', { id: ada.agentId })).isError).toBe(false);
    const refused = await operator.call('tasks_list');
    expect(refused.body.error).toBe('x-user-id is required for this tool');
    await Promise.all([speaking.close(), operator.close()]);
  });

  test('each of 50 concurrent requests is answered with its own id', async () => {
    const ids = Array.from({ length: 50 }, (_, index) => index);
    const answers = await Promise.all(
      ids.map((id) => post(toolCall(id % 2 ? 'agents_list' : 'tasks_list', {}, id))),
    );
    expect(answers.map(({ body }) => body.id)).toEqual(ids);
    expect(answers.every(({ body }) => body.result.isError !== true)).toBe(true);
  });
});

describe('the protocol', () => {
  test('an initialization names no session, and an unknown version gets the newest', async () => {
    const params = {
      protocolVersion: '1999-01-01',
      capabilities: {},
      clientInfo: { name: 'old', version: '1' },
    };
    const answer = await post({ jsonrpc: '2.0', id: 1, method: 'initialize', params });
    expect(answer.body.result).toMatchObject({
      protocolVersion: '2025-11-25',
      capabilities: { tools: { listChanged: false } },
      serverInfo: { name: 'agent-platform-service' },
    });
    expect(answer.headers.has('mcp-session-id')).toBe(false);
  });

  test('notifications and responses are accepted without an answer', async () => {
    const accepted = await post({ jsonrpc: '2.0', method: 'notifications/initialized' });
    expect([accepted.status, accepted.text]).toEqual([202, '']);
    expect((await post({ jsonrpc: '2.0', id: 3, result: {} })).status).toBe(202);
    const cancelled = { jsonrpc: '2.0', method: 'notifications/cancelled' };
    expect((await post([{ ...cancelled, params: { requestId: 1 } }])).status).toBe(202);
  });

  test('refuses an unknown protocol version', async () => {
    const headers = { 'mcp-protocol-version': '1999-01-01' };
    const refused = await post(toolCall('agents_list'), { headers });
    expect([refused.status, refused.body]).toMatchObject([
      400,
      { jsonrpc: '2.0', id: null, error: { message: expect.stringContaining('1999-01-01') } },
    ]);
  });

  test('refuses pages of other sites', attack, async () => {
    for (const origin of ['https://evil.example', 'null', `${PUBLIC_URL}.evil.example`]) {
      const headers = { origin };
      expect((await post(toolCall('agents_list'), { headers })).status).toBe(403);
      expect((await ask('GET', TOOLS_PATH, { headers })).status).toBe(403);
    }
    const own = { headers: { origin: PUBLIC_URL } };
    expect((await post(toolCall('agents_list'), own)).status).toBe(200);
  });

  test('refuses requests without a credential, and streams and sessions', async () => {
    const headers = { authorization: 'Bearer sk-wrong' };
    expect((await post(toolCall('agents_list'), { headers })).status).toBe(401);
    const stream = await ask('GET', TOOLS_PATH, { headers: { accept: 'text/event-stream' } });
    expect([stream.status, stream.headers.get('allow')]).toEqual([405, 'POST']);
    expect((await ask('DELETE', TOOLS_PATH)).status).toBe(405);
  });

  test('answers a batch, and a request that the batch cancels', { timeout: 20_000 }, async () => {
    const answer = await post([
      toolCall('agents_list', {}, 'a'),
      { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'a' } },
      { jsonrpc: '2.0', id: 'b', method: 'ping' },
      { jsonrpc: '2.0', id: 'c', method: 'nothing/such' },
    ]);
    const found = new Map(answer.body.map((each: { id: string }) => [each.id, each]));
    expect(found.get('a')).toMatchObject({ result: { content: [{ type: 'text' }] } });
    expect(found.get('b')).toMatchObject({ result: {} });
    expect(found.get('c')).toMatchObject({ error: { code: -32_601 } });
  });

  test.each([
    ['no JSON', '{'],
    ['no message', '{}'],
    ['an empty list', '[]'],
    ['a message of another version', '{"jsonrpc":"1.0","id":1,"method":"ping"}'],
    ['101 messages', JSON.stringify(Array(101).fill(toolCall('agents_list')))],
  ])('refuses %s', async (_, body) => {
    const refused = await post(body);
    expect([refused.status, refused.body]).toMatchObject([400, { jsonrpc: '2.0', id: null }]);
  });

  test('refuses a body over 1 MB', attack, async () => {
    const args = { message: 'x'.repeat(1024 * 1024), id: ada.agentId };
    const refused = await post(toolCall('agents_chat', args));
    expect([refused.status, refused.body.jsonrpc]).toEqual([413, '2.0']);
  });

  test('runs no tool for a request for a task of the protocol', attack, async () => {
    const { params, ...request } = toolCall('agents_delete', { id: bob.agentId });
    const headers = { authorization: `Bearer ${bob.key}` };
    const answer = await post({ ...request, params: { ...params, task: {} } }, { headers });
    expect(answer.body.error ?? answer.body.result.isError).toBeTruthy();
    expect((await bob.call('agents_get', { id: bob.agentId })).isError).toBe(false);
  });

  test('counts each call of a batch in the limits', attack, async () => {
    const from = newAddress();
    const batch = Array.from({ length: 100 }, (_, id) => toolCall('agents_get', { id: 'x' }, id));
    const results = async () => {
      const { body } = await post(batch, { from });
      return (Array.isArray(body) ? body : []).map(({ result }) => resultOf(result).body.error);
    };
    const first = await results();
    expect(first.filter((error) => error === 'Agent not found')).toHaveLength(100);
    const second = await results();
    // 120 of an address a minute: the first batch took 100, and the second 1 for itself.
    expect(second.filter((error) => error === 'Agent not found').length).toBeLessThan(21);
    expect(second.at(-1)).toBe('Too many requests, please slow down.');
  });
});

describe('the pages beside the tools', () => {
  test.each(['health', 'info', 'setup', 'examples', 'docs', 'github'])(
    '%s is the same by GET and by POST',
    async (name) => {
      const [got, posted] = [
        await ask('GET', hostmcp(name)),
        await ask('POST', hostmcp(name), { body: {} }),
      ];
      expect([got.status, posted.status]).toEqual([200, 200]);
      const timestamp = expect.any(String);
      expect({ ...posted.body, timestamp }).toEqual({ ...got.body, timestamp });
      expect((await ask('POST', hostmcp(name))).status).toBe(200);
      expect((await ask('POST', hostmcp(name), { body: { other: 1 } })).status).toBe(400);
      const headers = { authorization: 'Bearer sk-wrong' };
      expect((await ask('GET', hostmcp(name), { headers })).status).toBe(401);
    },
  );

  test('info names the public address and the versions', async () => {
    expect((await ask('GET', hostmcp('info'))).body).toEqual({
      name: 'agent-platform-service',
      version: expect.any(String),
      protocolVersions: expect.arrayContaining(['2025-11-25', '2025-06-18', '2025-03-26']),
      transport: 'streamable-http',
      endpoint: `${PUBLIC_URL}${TOOLS_PATH}`,
    });
  });

  test('health names unavailable services, and no address', async () => {
    const { body, text } = await ask('GET', hostmcp('health'));
    expect(body).toMatchObject({
      status: 'degraded',
      checks: { database: { ok: true }, temporal: { ok: false }, hosts: { ok: false } },
    });
    expect(text).not.toContain('127.0.0.1');
  });

  test('setup is accepted by validate-config once it has a key', async () => {
    const { clients } = (await ask('GET', hostmcp('setup'))).body;
    expect(clients.map(({ client }: { client: string }) => client)).toEqual([
      ...['openclaw', 'claude-code', 'vscode', 'cursor'],
    ]);
    for (const { client, config } of clients) {
      const one = await ask('GET', `${hostmcp('setup')}?client=${client}`);
      expect(one.body).toMatchObject({ client, config });
      const text = JSON.stringify(config);
      expect(text).toContain(`"Authorization":"Bearer <API_KEY>"`);
      const filled = JSON.parse(text.replace('<API_KEY>', ada.key));
      expect(await checked(filled)).toMatchObject({ valid: true, errors: [] });
      expect(await checked(config)).toMatchObject({
        valid: false,
        errors: [{ message: 'Replace <API_KEY> by an API key' }],
      });
    }
    expect((await ask('GET', `${hostmcp('setup')}?client=emacs`)).status).toBe(400);
    const posted = await ask('POST', hostmcp('setup'), { body: { client: 'cursor' } });
    expect(posted.body.client).toBe('cursor');
  });

  const checked = async (config: unknown) => {
    const { body, status } = await ask('POST', hostmcp('validate-config'), { body: { config } });
    expect(status).toBe(200);
    return body;
  };
  const url = `${PUBLIC_URL}${TOOLS_PATH}`;
  const withKey = (key: string) => ({ Authorization: `Bearer ${key}` });

  test.each<readonly [string, () => object, string, string]>([
    ['no server', () => ({}), '', 'no server'],
    [
      'another address',
      () => ({ mcpServers: { x: { url: 'https://evil.example/mcp' } } }),
      'mcpServers.x.url',
      `url must be ${url}`,
    ],
    [
      'another transport of OpenClaw',
      () => ({ mcp: { servers: { x: { url, transport: 'sse', headers: withKey(ada.key) } } } }),
      'mcp.servers.x.transport',
      'streamable-http',
    ],
    [
      'a command',
      () => ({ servers: { x: { command: 'npx', url, headers: withKey(ada.key) } } }),
      'servers.x.type',
      'another transport',
    ],
    [
      'no key',
      () => ({ servers: { x: { type: 'http', url } } }),
      'servers.x.headers.Authorization',
      'Authorization must be',
    ],
    [
      'a key that does not work',
      () => ({ servers: { x: { type: 'http', url, headers: withKey('sk-nothing') } } }),
      'servers.x.headers.Authorization',
      'is not a valid API key',
    ],
  ])('validate-config finds %s', async (_, config, path, reason) => {
    const { errors, valid } = await checked(config());
    expect(valid).toBe(false);
    expect(errors).toEqual([{ path, message: expect.stringContaining(reason) }]);
  });

  test('validate-config names missing scopes, and repeats no secret', attack, async () => {
    const { key } = await keyOf(database.db, ada.id, ['agents']);
    const config = { servers: { x: { type: 'http', url, headers: withKey(key) } } };
    const answer = await ask('POST', hostmcp('validate-config'), { body: { config } });
    expect(answer.body).toMatchObject({
      valid: true,
      warnings: [{ message: expect.stringMatching(/scope ai, .*usage_summary$/) }],
    });
    expect(answer.text).not.toContain(key);
    const variable = { servers: { x: { type: 'http', url, headers: withKey('${input:key}') } } };
    expect(await checked(variable)).toMatchObject({ valid: true, warnings: [{}] });
    const without = await ask('POST', hostmcp('validate-config'), { body: { config: 'x' } });
    expect(without.status).toBe(400);
  });

  test('examples name each tool once, and docs each argument', async () => {
    const { tools } = (await ask('GET', TOOLS_PATH)).body;
    const { examples } = (await ask('GET', hostmcp('examples'))).body;
    const names = tools.map(({ name }: { name: string }) => name);
    expect(examples.map(({ tool }: { tool: string }) => tool)).toEqual(names);
    const { content } = (await ask('GET', hostmcp('docs'))).body;
    for (const { inputSchema, name } of tools) {
      expect(content).toContain(`## ${name}\n`);
      for (const argument of Object.keys(inputSchema.properties)) {
        expect(content).toContain(`- \`${argument}\``);
      }
    }
  });

  test('github has an entry for registries', async () => {
    const { server, ...source } = (await ask('GET', hostmcp('github'))).body;
    expect(source).toEqual({ repository: null, version: server.version, commit: null });
    expect(server).toMatchObject({
      name: 'com.example.agents/agent-platform-service',
      remotes: [{ type: 'streamable-http', url, headers: [{ isSecret: true }] }],
    });
    expect(server.description.length).toBeGreaterThan(10);
  });
});
