import { afterAll, beforeAll, expect, test } from 'vitest';
import { createBackend } from '../../api/backend/backend.js';
import type { Listening } from '../../api/http/server.js';
import { makeAgent } from '../money/splits/support.js';
import { makeAccount } from '../support/account.js';
import { databaseAlone } from '../support/dependencies.js';
import { testDatabase, type TestDatabase } from '../support/postgres.js';
import { keyOf, mcpClient, type McpClient } from './support.js';

const INTERNAL_KEY = 'the internal key of these tests';

let database: TestDatabase;
let alone: Awaited<ReturnType<typeof databaseAlone>>;
let backend: Listening;

/** A user with an agent, and an MCP client that has the user's key. */
interface Holder extends McpClient {
  readonly id: string;
  readonly agentId: string;
}

let ada: Holder;
let bob: Holder;

beforeAll(async () => {
  database = await testDatabase();
  alone = await databaseAlone(database, undefined, {
    TRUSTED_PROXIES: '127.0.0.1',
    INTERNAL_API_KEY: INTERNAL_KEY,
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
  const { authorization } = await keyOf(database.db, id);
  return { id, agentId, ...(await mcpClient(backend.url, { authorization })) };
}

test("lists a key's own agents to the SDK's client", async () => {
  const listed = await ada.call('agents_list');
  expect(listed).toMatchObject({ isError: false, body: [{ id: ada.agentId }] });
  expect((await bob.call('agents_list')).body).toMatchObject([{ id: bob.agentId }]);
});
