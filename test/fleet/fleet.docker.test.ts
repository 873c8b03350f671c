import { afterAll, beforeAll, expect, test } from 'vitest';
import { superviseAgentId } from '../../workflows/ids.js';
import {
  ADMIN_EMAIL,
  TEMPORAL_UI,
  testPlatform,
  type TestPlatform,
  type TestUser,
} from '../support/platform.js';

let platform: TestPlatform;
let ada: TestUser;
let agentId: string;

beforeAll(async () => {
  platform = await testPlatform({ env: { WATCHDOG_CHECK_INTERVAL: '60m' } });
  ada = await platform.signUp('network');
  agentId = await platform.runningAgent(ada);
});
afterAll(async () => {
  await platform?.dockerHost.workspaces.close();
  await platform?.close();
});

const read = async (user: TestUser, path: string) => {
  const { body, status } = await platform.web(user, 'GET', path);
  expect([status, body]).toEqual([200, body]);
  return body;
};
const traces = async (user: TestUser, query = '') =>
  read(user, `/api/mission-control/fleet/traces${query}`);

test('shows the steps of a creation, and the run only to administrators', async () => {
  const admin = await platform.signUp('network', ADMIN_EMAIL);
  const adminsAgent = await platform.runningAgent(admin);
  const [listed] = (await traces(ada)).traces;
  expect(listed).toMatchObject({ kind: 'operation', name: 'provision', status: 'succeeded' });
  const { trace } = await traces(ada, `?id=${listed.id}`);
  expect(trace).toMatchObject({ ...listed, retained: true, truncated: false });
  expect(trace).not.toHaveProperty('run');
  const names = trace.spans.map(({ name }: { name: string }) => name);
  expect(names).toEqual(expect.arrayContaining(['provisionAgent', 'createContainer']));

  const [own] = (await traces(admin)).traces;
  const { run } = (await traces(admin, `?id=${own.id}`)).trace;
  const workflowId = superviseAgentId(adminsAgent);
  expect(run.workflowId).toBe(workflowId);
  const { namespace } = platform.temporal;
  const workflows = `${TEMPORAL_UI}/namespaces/${namespace}/workflows`;
  expect(run.url).toBe(`${workflows}/${workflowId}/${run.runId}/history`);
});

test("reads an agent's soul from its memory", async () => {
  const soul = () => read(ada, `/api/colony/status?view=soul&agentId=${agentId}`);
  const before = await soul();
  expect([before.view, before.state, before.soul]).toEqual(['soul', 'idle', null]);
  const write = (path: string, content: string) =>
    platform.web(ada, 'POST', '/api/memory', { body: { agentId, path, content } });
  expect((await write('SOUL.md', 'Be kind.\n')).status).toBe(201);
  expect((await write('memory/2026-11-28.md', 'Rain')).status).toBe(201);
  await platform.web(ada, 'POST', '/api/chat', { body: { agentId, message: 'hello' } });
  const { attention, memory, soul: found, state } = await soul();
  expect(found).toMatchObject({ path: 'SOUL.md', content: expect.stringContaining('Be kind.') });
  expect(memory.files).toBe(before.memory.files + 2);
  expect(memory.bytes).toBeGreaterThanOrEqual(before.memory.bytes + 13);
  expect(Date.parse(memory.lastModified)).toBeGreaterThan(Date.now() - 60_000);
  expect([state, attention.lastHeartbeatAt, attention.lastTaskAt]).toEqual(['awake', null, null]);
  expect(Date.parse(attention.lastMessageAt)).toBeGreaterThan(Date.now() - 60_000);
});

test('refuses the soul to an API key without the scope of files', { tags: 'attack' }, async () => {
  const statusOf = async (...scopes: string[]) => {
    const made = await platform.web(ada, 'POST', '/api/keys', {
      body: { name: scopes.join('-'), scopes },
    });
    const headers = { authorization: `Bearer ${made.body.key}` };
    const path = `/api/colony/status?view=soul&agentId=${agentId}`;
    const { body, status } = await platform.web(undefined, 'GET', path, { headers });
    return [status, body.code];
  };
  expect(await statusOf('agents')).toEqual([403, 'SCOPE_REQUIRED']);
  expect(await statusOf('agents', 'files')).toEqual([200, undefined]);
});

test('shows a stopped agent as asleep', async () => {
  await platform.web(ada, 'POST', `/api/agents/${agentId}/stop?wait=60`);
  const { state, soul } = await read(ada, `/api/colony/status?view=soul&agentId=${agentId}`);
  expect([state, soul.path]).toEqual(['asleep', 'SOUL.md']);
});
