import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { readAgentTokens } from '../../../src/agents/credentials/agent-secrets.js';
import { call } from '../../support/http.js';
import { testPlatform, type TestPlatform, type TestUser } from '../../support/platform.js';
import { completion, sendJson } from '../../support/provider-stub.js';
import { apiKeyOf } from './support.js';

let platform: TestPlatform;
let ada: TestUser;
let bob: TestUser;
let apiKey: string;
let agentId: string;
let token: string;

beforeAll(async () => {
  platform = await testPlatform({ workers: false });
  [ada, bob] = await Promise.all([platform.signUp('network'), platform.signUp('network')]);
  apiKey = await apiKeyOf(platform, ada);
  const made = await platform.backend(ada, 'POST', '/api/deployments', {
    body: { name: 'agent', model: 'gpt-4' },
  });
  agentId = made.body.id;
  for (const each of await readAgentTokens(platform.db.asPlatform(), platform.secrets, agentId)) {
    const headers = { authorization: `Bearer ${each}` };
    const { status } = await call(platform.agentsUrl, 'GET', '/v1/models', { headers });
    if (status === 200) token = each;
  }
});
afterEach(() => platform.provider.behave());
afterAll(() => platform?.close());

const TOOL = 'read_file';
const TOOL_OFFERED = {
  type: 'function',
  function: { name: TOOL, parameters: { type: 'object' } },
};
const HELLO = { role: 'user', content: 'hello' };
const callOf = (id: string, name = TOOL) => ({
  id,
  type: 'function',
  function: { name, arguments: '{"path":"secret-path"}' },
});
const saying = (id: string, name = TOOL) => ({
  role: 'assistant',
  content: null,
  tool_calls: [callOf(id, name)],
});
const result = (id: string, content = 'secret-result') => ({
  role: 'tool',
  tool_call_id: id,
  content,
});

/** Makes the provider answer with a call of a tool, complete or as a stream. */
function callTool(id: string, name = TOOL): void {
  platform.provider.behave(({ body }, response) => {
    if (body.stream !== true) {
      const whole = completion('', body.model);
      const choices = [{ index: 0, message: saying(id, name), finish_reason: 'tool_calls' }];
      return sendJson(response, 200, { ...whole, choices });
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const { function: called, ...head } = callOf(id, name);
    const deltas = [
      { role: 'assistant', tool_calls: [{ index: 0, ...head, function: { name, arguments: '' } }] },
      { tool_calls: [{ index: 0, function: { arguments: called.arguments } }] },
    ];
    const chunks = deltas.map((delta) => ({ choices: [{ index: 0, delta, finish_reason: null }] }));
    const last = { choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] };
    for (const data of [...chunks, last]) response.write(`data: ${JSON.stringify(data)}\n\n`);
    response.end('data: [DONE]\n\n');
  });
}

const LISTENERS = {
  agent: () => ({ url: platform.agentsUrl, key: token }),
  program: () => ({ url: platform.backendUrl, key: apiKey }),
};
type Listener = keyof typeof LISTENERS;

async function ask(who: Listener, messages: readonly object[], more: object = {}) {
  const { key, url } = LISTENERS[who]();
  const tools = [TOOL_OFFERED];
  const answer = await call(url, 'POST', '/v1/chat/completions', {
    body: { model: 'auto', messages, tools, ...more },
    headers: { authorization: `Bearer ${key}` },
  });
  expect(answer.status).toBe(200);
}

/** Returns the report as soon as all calls are in the database. */
async function report(query = '', user: TestUser | undefined = ada) {
  await platform.meter.flushed();
  const { body, status } = await platform.backend(user, 'GET', `/api/usage/tools${query}`);
  expect(status).toBe(200);
  return body;
}
const rowOf = async (name: string, query = '') =>
  (await report(query)).find(({ tool_name: tool }: { tool_name: string }) => tool === name);

test.each([
  ['agent', false],
  ['agent', true],
  ['program', false],
  ['program', true],
] as const)('counts a call of the %s, streamed: %s, and its result once', async (who, stream) => {
  const name = `tool_${who}_${stream}`;
  const id = randomUUID();
  callTool(id, name);
  await ask(who, [HELLO], { stream });
  const before = { tool_name: name, calls: 1, successes: 0, avg_ms: null };
  expect(await rowOf(name)).toEqual(before);
  platform.provider.behave();
  const conversation = [HELLO, saying(id, name), result(id)];
  await ask(who, [...conversation, HELLO]);
  const after = { ...before, successes: 1, avg_ms: expect.any(Number) };
  expect(await rowOf(name)).toEqual(after);
  await ask(who, [...conversation, HELLO, HELLO]);
  expect(await rowOf(name)).toEqual(after);
  const ofAgent = await rowOf(name, `?agentId=${agentId}`);
  expect(ofAgent).toEqual(who === 'agent' ? after : undefined);
});

test('a result that states its failure counts as a failure', async () => {
  const id = randomUUID();
  callTool(id, 'failing');
  await ask('agent', [HELLO]);
  platform.provider.behave();
  await ask('agent', [HELLO, saying(id, 'failing'), result(id, '{"isError":true}'), HELLO]);
  expect(await rowOf('failing')).toMatchObject({
    calls: 1,
    successes: 0,
    avg_ms: expect.any(Number),
  });
});

test('a result completes its call although the first request with it has no answer', async () => {
  const id = randomUUID();
  callTool(id, 'retried');
  await ask('agent', [HELLO]);
  const messages = [HELLO, saying(id, 'retried'), result(id), HELLO];
  platform.provider.behave((_, response) => sendJson(response, 400, { error: { message: 'no' } }));
  const { key, url } = LISTENERS.agent();
  const refused = await call(url, 'POST', '/v1/chat/completions', {
    body: { model: 'auto', messages },
    headers: { authorization: `Bearer ${key}` },
  });
  expect(refused.status).not.toBe(200);
  expect(await rowOf('retried')).toMatchObject({ successes: 0 });
  platform.provider.behave();
  await ask('agent', messages);
  expect(await rowOf('retried')).toMatchObject({ calls: 1, successes: 1 });
});

test('calls by POST /api/ai/chat are not counted', async () => {
  callTool(randomUUID(), 'uncounted');
  const { status } = await call(platform.backendUrl, 'POST', '/api/ai/chat', {
    body: { messages: [HELLO], tools: [TOOL_OFFERED] },
    headers: { authorization: `Bearer ${apiKey}` },
  });
  expect(status).toBe(200);
  expect(await rowOf('uncounted')).toBeUndefined();
});

test('the report is for its user, by the internal key or a key with the scope of AI', async () => {
  callTool(randomUUID(), 'of_ada');
  await ask('program', [HELLO]);
  expect(await report('', bob)).toEqual([]);
  expect(await report(`?agentId=${agentId}`, bob)).toEqual([]);
  const by = (key: string) =>
    call(platform.backendUrl, 'GET', '/api/usage/tools', {
      headers: { authorization: `Bearer ${key}` },
    });
  expect((await by(apiKey)).body).toEqual(await report());
  const made = await platform.web(ada, 'POST', '/api/keys', {
    body: { name: 'files', scopes: ['files'] },
  });
  expect(await by(made.body.key)).toMatchObject({ status: 403, body: { code: 'SCOPE_REQUIRED' } });
});

test('arguments and results are stored nowhere', { tags: 'attack' }, async () => {
  await platform.meter.flushed();
  const rows = await platform.db
    .asPlatform()
    .query('SELECT t::text FROM tool_usage_daily t UNION ALL SELECT u::text FROM usage_logs u');
  expect(rows.length).toBeGreaterThan(0);
  expect(JSON.stringify(rows)).not.toMatch(/secret-(?:path|result)/);
  expect(platform.logged.join('\n')).not.toMatch(/secret-(?:path|result)/);
});
