import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Listening } from '../../../api/http/server.js';
import { createWeb } from '../../../api/web/web.js';
import { makeAccount, signIn } from '../../support/account.js';
import { databaseAlone } from '../../support/dependencies.js';
import { call, newAddress } from '../../support/http.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';

const attack = { tags: 'attack' };

/** Invalid keys that a user may present in a minute. */
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

const validate = async (headers: Readonly<Record<string, string>>, apiKey: string) => {
  const options = { body: { apiKey }, headers, from: newAddress() };
  return (await call(web.url, 'POST', '/api/keys/validate', options)).status;
};

const guess = (headers: Readonly<Record<string, string>>) =>
  validate(headers, `sk_${randomBytes(32).toString('base64url')}`);

test(
  'refuses a user who has presented 60 invalid API keys in a minute, from any address',
  attack,
  async () => {
    const [ada, bob] = [await person(), await person()];
    const statuses: number[] = [];
    for (let n = 0; n <= MAX; n++) statuses.push(await guess(ada));
    expect(statuses).toEqual([...Array<number>(MAX).fill(401), 429]);
    expect(await guess(bob)).toBe(401);
  },
);

test('does not count valid API keys', async () => {
  const ada = await person();
  const made = await call(web.url, 'POST', '/api/keys', { body: { name: 'ci' }, headers: ada });
  for (let n = 0; n <= MAX; n++) expect(await validate(ada, made.body.key)).toBe(200);
  expect(await guess(ada)).toBe(401);
});
