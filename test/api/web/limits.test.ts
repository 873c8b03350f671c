import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Listening } from '../../../api/http/server.js';
import { createWeb, webEndpoints } from '../../../api/web/web.js';
import { makeAccount, signIn } from '../../support/account.js';
import { databaseAlone } from '../../support/dependencies.js';
import { call, newAddress } from '../../support/http.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';

let database: TestDatabase;
let alone: Awaited<ReturnType<typeof databaseAlone>>;
let web: Listening;
let cookie: string;

beforeAll(async () => {
  database = await testDatabase();
  alone = await databaseAlone(database, undefined, { TRUSTED_PROXIES: '127.0.0.1' });
  web = await createWeb(alone.dependencies).listen('127.0.0.1', 0);
  cookie = await signIn(database.db, await makeAccount(database.db));
});
afterAll(async () => {
  await web?.close();
  await alone?.close();
  await database?.close();
});

test.each([
  ['/api/agents', '100', '/api/browse/tree', '100'],
  ['/api/browse/tree', '100', '/api/agents', '100'],
  ['/api/datafeeds', '100', '/api/agents', '100'],
  ['/api/chat?agentId=none', '60', '/api/agent?agentId=none', '60'],
  ['/api/agent?agentId=none', '60', '/api/chat?agentId=none', '60'],
])('a request to %s of %s a minute counts for no request to %s of %s', async (...pair) => {
  const [used, most, other, mostOfOther] = pair;
  const from = newAddress();
  const left = async (path: string) => {
    const { headers } = await call(web.url, 'GET', path, { headers: { cookie }, from });
    return [headers.get('ratelimit-limit'), headers.get('ratelimit-remaining')];
  };
  expect(await left(used)).toEqual([most, String(Number(most) - 1)]);
  expect(await left(used)).toEqual([most, String(Number(most) - 2)]);
  expect(await left(other)).toEqual([mostOfOther, String(Number(mostOfOther) - 1)]);
});

test.each([
  '/api/scheduled-tasks',
  '/api/swarms',
  '/api/skills',
  '/api/skills/:name',
  '/api/generate-video',
  '/api/memory',
  '/api/radio/streams',
])('each change by %s has a rate of the user, from any address', (path) => {
  const changes = webEndpoints(alone.dependencies).filter(
    (each) => each.path === path && each.method !== 'GET',
  );
  expect(changes.length).toBeGreaterThan(0);
  expect(changes.filter(({ limitOfCaller }) => limitOfCaller === undefined)).toEqual([]);
});
