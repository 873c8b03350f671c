import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeAccount, signIn } from '../../support/account.js';
import { call, newAddress } from '../../support/http.js';
import { webAlone, type WebAlone } from '../../support/web-alone.js';

const attack = { tags: 'attack' };

/** Invalid keys that a user may present in a minute. */
const MAX = 60;

let web: WebAlone;
beforeAll(async () => {
  web = await webAlone();
});
afterAll(() => web?.close());

const person = async () => ({
  cookie: await signIn(web.database.db, await makeAccount(web.database.db)),
});

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
