import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Listening } from '../../../api/http/server.js';
import { createWeb } from '../../../api/web/web.js';
import { makeAccount, signIn } from '../../support/account.js';
import { databaseAlone } from '../../support/dependencies.js';
import { call, newAddress } from '../../support/http.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';

const attack = { tags: 'attack' };

/** Keys that a user or an address may have validated in a minute. */
const MAX = 60;

let database: TestDatabase;
let alone: Awaited<ReturnType<typeof databaseAlone>>;
let web: Listening;
beforeAll(async () => {
  database = await testDatabase();
  alone = await databaseAlone(database);
  web = await createWeb(alone.dependencies).listen('127.0.0.1', 0);
});
afterAll(async () => {
  await web?.close();
  await alone?.close();
  await database?.close();
});

const person = async () => ({ cookie: await signIn(database.db, await makeAccount(database.db)) });

async function guess(headers: Readonly<Record<string, string>>, from = newAddress()) {
  const apiKey = `sk_${randomBytes(32).toString('base64url')}`;
  const path = '/api/keys/validate';
  return (await call(web.url, 'POST', path, { body: { apiKey }, headers, from })).status;
}

test('validates 60 API keys a minute for a user, from all addresses together', attack, async () => {
  const [ada, bob] = [await person(), await person()];
  const statuses: number[] = [];
  for (let n = 0; n <= MAX; n++) statuses.push(await guess(ada));
  expect(statuses).toEqual([...Array<number>(MAX).fill(401), 429]);
  expect(await guess(bob)).toBe(401);
});

test('validates 60 API keys a minute for an address, from all users together', attack, async () => {
  const users = await Promise.all(Array.from({ length: 3 }, person));
  const from = newAddress();
  const statuses: number[] = [];
  for (let n = 0; n <= MAX; n++) statuses.push(await guess(users[n % users.length] ?? {}, from));
  expect(statuses).toEqual([...Array<number>(MAX).fill(401), 429]);
});
