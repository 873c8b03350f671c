// @module-tag attack
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createBackend } from '../../../api/backend/backend.js';
import type { Listening } from '../../../api/http/server.js';
import { isAdmin } from '../../../src/accounts/accounts/admin.js';
import { createApiKey } from '../../../src/accounts/accounts/api-keys.js';
import { makeAdminLinks } from '../../../src/accounts/accounts/admin-links.js';
import { bearer } from '../../api/http/support.js';
import { makeAccount, type TestAccount } from '../../support/account.js';
import { databaseAlone } from '../../support/dependencies.js';
import { call } from '../../support/http.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';

const INTERNAL = 'the internal key of this test, long enough';
const BOSS = 'boss@example.com';
const SQUATTED = 'squatted@example.com';

let database: TestDatabase;
let alone: Awaited<ReturnType<typeof databaseAlone>>;
let backend: Listening;
let boss: TestAccount;
let squatter: TestAccount;
let nobody: TestAccount;

beforeAll(async () => {
  database = await testDatabase();
  const env = {
    INTERNAL_API_KEY: INTERNAL,
    TRUSTED_PROXIES: '127.0.0.1',
    ADMIN_EMAILS: [BOSS, SQUATTED].join(),
  };
  alone = await databaseAlone(database, undefined, env);
  backend = await createBackend(alone.dependencies).listen('127.0.0.1', 0);
  boss = await makeAccount(database.db, { email: BOSS });
  squatter = await makeAccount(database.db, { email: SQUATTED });
  nobody = await makeAccount(database.db);
  for (const { id } of [boss, nobody]) {
    await database.db
      .asUser(id)
      .transaction((db) => db.User.update({ emailVerifiedAt: new Date() }, { where: { id } }));
  }
});
afterAll(async () => {
  await backend?.close();
  await alone?.close();
  await database?.close();
});

async function ask(headers: Record<string, string>) {
  const answer = await fetch(`${backend.url}/api/hosts`, { headers });
  const body = (await answer.json()) as { code?: string };
  return answer.status === 403 ? body.code : answer.status;
}
const keyOf = async ({ id }: TestAccount) => {
  const owner = { userId: id, requestId: randomUUID() };
  const asked = { name: 'admin key', site: 'here' };
  return (await createApiKey(database.db, owner, asked)).key;
};

test.each([
  { emailVerified: true, isAdmin: false, listed: true, is: true },
  { emailVerified: false, isAdmin: false, listed: true, is: false },
  { emailVerified: false, isAdmin: true, listed: true, is: true },
  { emailVerified: true, isAdmin: false, listed: false, is: false },
  { emailVerified: true, isAdmin: true, listed: false, is: false },
])(
  'isAdmin with verified: $emailVerified, stored: $isAdmin, listed: $listed returns $is',
  ({ listed, is, ...user }) => {
    const rules = { adminEmails: [listed ? BOSS : 'another@example.com'] };
    expect(isAdmin({ email: BOSS, ...user }, rules)).toBe(is);
  },
);

test("the internal key acts as the operator, and with a user's headers as that user", async () => {
  expect(await ask({})).toBe(401);
  expect(await ask(bearer('another'))).toBe('ADMIN_REQUIRED');
  const by = (headers: Record<string, string>) => ask({ ...bearer(INTERNAL), ...headers });
  expect(await by({})).toBe(200);
  expect(await by({ 'x-user-email': 'Boss@Example.com' })).toBe(200);
  expect(await by({ 'x-user-email': nobody.email })).toBe('ADMIN_REQUIRED');
  expect(await by({ 'x-user-id': boss.id })).toBe(200);
  for (const id of [squatter.id, nobody.id, 'no-such-user']) {
    const claimed = { 'x-user-id': id, 'x-user-email': BOSS, 'x-user-role': 'admin' };
    expect(await by(claimed)).toBe('ADMIN_REQUIRED');
  }
});

test('an address in ADMIN_EMAILS is an admin on the AI API regardless of the role', async () => {
  const estimate = async (headers: Record<string, string>) => {
    const body = { model: 'openai/gpt-4', inputTokens: 1, outputTokens: 1 };
    const at = '/api/ai/estimate-cost';
    const given = { body, headers: { ...bearer(INTERNAL), ...headers } };
    return (await call(backend.url, 'POST', at, given)).body.code ?? 'allowed';
  };
  for (const role of ['user', 'admin', '']) {
    const claimed = { 'x-user-id': 'u1', 'x-user-role': role };
    expect(await estimate({ ...claimed, 'x-user-email': BOSS })).toBe('allowed');
    expect(await estimate({ ...claimed, 'x-user-email': nobody.email })).toBe('PLAN_REQUIRED');
  }
});

const OF_THE_OPERATOR = [
  ['POST', '/api/hosts/h1/cordon'],
  ['POST', '/api/hosts/h1/uncordon'],
  ['POST', '/api/hosts/h1/drain'],
  ['DELETE', '/api/hosts/h1'],
  ['GET', '/api/underground/payments'],
] as const;

test.each(OF_THE_OPERATOR)(
  '%s %s on behalf of a user, even of an admin, is a 403 ADMIN_REQUIRED',
  async (method, at) => {
    const headers = { ...bearer(INTERNAL), 'x-user-id': boss.id };
    const { body, status } = await call(backend.url, method, at, { headers });
    expect([status, body.code]).toEqual([403, 'ADMIN_REQUIRED']);
  },
);

test.each(OF_THE_OPERATOR)(
  '%s %s requires the internal key and an admin for an email',
  async (method, at) => {
    const by = async (headers: Record<string, string>) => {
      const { body, status } = await call(backend.url, method, at, { headers });
      return status === 403 ? body.code : status;
    };
    expect(await by({})).toBe(401);
    for (const key of ['another', await keyOf(boss)]) {
      expect(await by(bearer(key))).toBe('ADMIN_REQUIRED');
    }
    const email = (address: string) => by({ ...bearer(INTERNAL), 'x-user-email': address });
    expect(await email(nobody.email)).toBe('ADMIN_REQUIRED');
    const [alone, admin] = [await by(bearer(INTERNAL)), await email(BOSS.toUpperCase())];
    expect([alone, admin]).toEqual(method === 'GET' ? [200, 200] : [404, 404]);
  },
);

test('an API key has admin rights only if its owner is an admin', async () => {
  expect(await ask(bearer(await keyOf(boss)))).toBe(200);
  for (const owner of [squatter, nobody]) {
    const claimed = { 'x-user-id': boss.id, 'x-user-email': BOSS };
    expect(await ask({ ...bearer(await keyOf(owner)), ...claimed })).toBe('ADMIN_REQUIRED');
  }
});

test('a user who is an admin by a verified address gets no admin link', async () => {
  const links = await makeAdminLinks(database.db, [BOSS, SQUATTED]);
  expect(links.map(({ email }) => email)).toEqual([SQUATTED]);
});
