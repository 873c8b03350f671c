import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { testPlatform, type TestPlatform, type TestUser } from '../support/platform.js';
import { call as request, newAddress } from '../support/http.js';
import { keyOf, mcpClient, resultOf, TOOLS_PATH, type McpClient } from './support.js';

let platform: TestPlatform;
let ada: TestUser;
let authorization: string;
let mcp: McpClient;
let agentId: string;

beforeAll(async () => {
  platform = await testPlatform();
  ada = await platform.signUp('solo');
  ({ authorization } = await keyOf(platform.db, ada.id));
  mcp = await mcpClient(platform.backendUrl, { authorization });
});
afterAll(async () => {
  await mcp?.close();
  await platform?.close();
});

/** Returns the text of each tool's example. */
async function examples(): Promise<ReadonlyMap<string, string>> {
  const { body } = await request(platform.backendUrl, 'GET', '/api/hostmcp/examples', {
    headers: { authorization },
  });
  return new Map(
    body.examples.map((each: { tool: string; request: object }) => [
      each.tool,
      JSON.stringify(each.request),
    ]),
  );
}

/** Runs the example of a tool for the agent, and returns the result, which is no error. */
async function runExample(tool: string) {
  const body = (await examples()).get(tool)?.replace('<AGENT_ID>', agentId);
  const answer = await request(platform.backendUrl, 'POST', TOOLS_PATH, {
    headers: { authorization, 'x-forwarded-for': newAddress() },
    body,
  });
  const result = resultOf(answer.body.result);
  expect([tool, result.isError, result.texts]).toEqual([tool, false, result.texts]);
  return result.body;
}

describe("an MCP client with a user's key", () => {
  test('creates an agent of the plan, within its cap', async () => {
    const made = await mcp.call('agents_create', { name: 'Researcher' });
    expect(made).toMatchObject({ isError: false, body: { name: 'Researcher', status: 'pending' } });
    agentId = made.body.id;
    const beyond = await mcp.call('agents_create', { name: 'Big', config: { plan: 'network' } });
    expect(beyond).toMatchObject({ isError: true, body: { code: 'PLAN_REQUIRED' } });
    // A minute admits five creations of an address.
    const many = await Promise.all(
      Array.from({ length: 3 }, (_, n) => mcp.call('agents_create', { name: `Agent ${n}` })),
    );
    for (const { body, isError } of many) {
      expect([isError, body]).toMatchObject([true, { current: 1, limit: 1 }]);
    }
    await platform.becomes(agentId, 'active');
    expect((await mcp.call('agents_get', { id: agentId })).body).toMatchObject({
      ...{ id: agentId, plan: 'solo', status: 'active' },
    });
  });

  test('runs the example of each tool', async () => {
    for (const tool of (await examples()).keys()) {
      // The last ones, in the test of the deletion: the agent is needed until then.
      if (tool === 'agents_delete' || tool === 'agents_create') continue;
      await runExample(tool);
      // The examples stop and restart the agent before they send it a message.
      if (tool === 'agents_restart') await platform.becomes(agentId, 'active');
    }
  });

  test('lists an agent, chats with it and stops it, and each change is audited', async () => {
    expect((await mcp.call('agents_list')).body).toMatchObject([{ id: agentId }]);
    const asked = await mcp.call('agents_chat', { id: agentId, message: 'hello' });
    expect(asked.body).toMatchObject({ agentId, message: { content: 'said: hello' } });
    expect((await mcp.call('agents_stats', { id: agentId })).body.container).not.toBeNull();
    expect(
      (await mcp.call('agents_logs', { id: agentId, limit: 5 })).body.lines.length,
    ).toBeGreaterThan(0);
    const stopped = await mcp.call('agents_stop', { id: agentId, wait: 60 });
    expect(stopped.body).toMatchObject({ id: agentId, operation: 'stop', status: 'succeeded' });
    const refused = await mcp.call('agents_chat', { id: agentId, message: 'hello' });
    expect(refused).toMatchObject({ isError: true, body: { code: expect.any(String) } });
    const rows = await platform.db
      .asPlatform()
      .query<{ action: string }>(
        `SELECT DISTINCT action FROM audit_log WHERE actor = $id AND subject = $agentId`,
        { id: ada.id, agentId },
      );
    expect(rows.length).toBeGreaterThan(1);
  });

  test('deletes the agent, and creates one for all requests with one Idempotency-Key', async () => {
    expect(await runExample('agents_delete')).toEqual({ id: agentId, deleted: true });
    expect((await mcp.call('agents_list')).body).toEqual([]);
    ({ id: agentId } = await runExample('agents_create'));
    expect((await mcp.call('agents_list')).body).toMatchObject([{ id: agentId }]);
    await runExample('agents_delete');
    const headers = { authorization, 'idempotency-key': 'one-creation' };
    const params = { name: 'agents_create', arguments: { name: 'Second' } };
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
    const create = async () =>
      resultOf(
        (await request(platform.backendUrl, 'POST', TOOLS_PATH, { headers, body })).body.result,
      );
    const [first, again] = [await create(), await create()];
    expect(first.isError).toBe(false);
    expect(again.body).toEqual(first.body);
  });
});
