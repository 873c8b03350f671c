// @module-tag attack
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createWeb } from '../../../api/web/web.js';
import type { Listening } from '../../../api/http/server.js';
import { ADMIN_LINK_PATH, makeAdminLinks } from '../../../src/accounts/accounts/admin-links.js';
import { queryRows } from '../../platform/database/catalog.js';
import { postJson } from '../../api/http/support.js';
import { databaseAlone } from '../../support/dependencies.js';
import { ADMIN_EMAIL } from '../../support/platform-environment.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';

const BOSSES = Array.from({ length: 4 }, (_, n) => `boss${n}@example.com`);
const PASSWORD = 'an-old-password';

let database: TestDatabase;
let alone: Awaited<ReturnType<typeof databaseAlone>>;
let web: Listening;

beforeAll(async () => {
  database = await testDatabase();
  const env = { ADMIN_EMAILS: [ADMIN_EMAIL, ...BOSSES].join(), TRUSTED_PROXIES: '127.0.0.1' };
  alone = await databaseAlone(database, undefined, env);
  web = await createWeb(alone.dependencies).listen('127.0.0.1', 0);
});
afterAll(async () => {
  await web?.close();
  await alone?.close();
  await database?.close();
});

/** Registers a new user, signs in and returns the session cookie. */
async function signUp(email = `${randomUUID()}@example.com`): Promise<string> {
  const body = { email, password: PASSWORD };
  expect((await fetch(`${web.url}/api/register`, postJson(body))).status).toBe(200);
  const signedIn = await fetch(`${web.url}/api/auth/login`, postJson(body));
  return signedIn.headers.get('set-cookie')?.split(';')[0] ?? '';
}

const ask = (path: string, cookie: string) => fetch(web.url + path, { headers: { cookie } });
const open = async (token: string | undefined, cookie: string) => {
  const shown = await ask(`${ADMIN_LINK_PATH}?token=${token}`, cookie);
  return { status: shown.status, text: await shown.text() };
};
const use = async (token: string | undefined, cookie: string) =>
  (await fetch(web.url + ADMIN_LINK_PATH, postJson({ token }, { cookie }))).status;
const isAdmin = async (cookie: string) =>
  ((await (await ask('/api/auth/session', cookie)).json()) as { user: { isAdmin: boolean } }).user
    .isAdmin;
const linkFor = async (email: string) => (await makeAdminLinks(database.db, [email]))[0]?.token;

test('registering an address in ADMIN_EMAILS grants no admin rights; its admin link does, once', async () => {
  const [email = ''] = BOSSES;
  const cookie = await signUp(email);
  expect(await isAdmin(cookie)).toBe(false);
  const token = await linkFor(email);
  expect(await use('x'.repeat(43), cookie)).toBe(404);
  expect(await use(token, cookie)).toBe(200);
  expect(await isAdmin(cookie)).toBe(true);
  expect(await use(token, cookie)).toBe(404);
  expect(await makeAdminLinks(database.db, [email])).toEqual([]);
});

test('opening an admin link changes nothing and shows a button that uses the link', async () => {
  const email = BOSSES[3] ?? '';
  const cookie = await signUp(email);
  const token = await linkFor(email);
  for (let opened = 0; opened < 2; opened++) {
    expect(await open(token, '')).toMatchObject({ status: 200 });
    const { status, text } = await open(token, cookie);
    expect(status).toBe(200);
    expect(text).toContain(email);
    expect(text).toMatch(/<form[^>]* method="post" action="\/api\/auth\/admin"[^>]* data-token/);
    expect(text).not.toContain(token);
  }
  expect(await isAdmin(cookie)).toBe(false);
  expect(await use(token, cookie)).toBe(200);
  expect(await isAdmin(cookie)).toBe(true);
});

test('another account or an anonymous caller cannot use an admin link and does not use it up', async () => {
  const email = BOSSES[1] ?? '';
  const [boss, stranger] = [await signUp(email), await signUp()];
  const token = await linkFor(email);
  expect(await use(token, '')).toBe(401);
  expect(await use(token, stranger)).toBe(404);
  expect(await isAdmin(stranger)).toBe(false);
  expect(await use(token, boss)).toBe(200);
});

test('an admin link expires after an hour or when a newer link is made; only its hash is stored', async () => {
  const email = BOSSES[2] ?? '';
  const cookie = await signUp(email);
  const [first, second] = [await linkFor(email), await linkFor(email)];
  expect(await use(first, cookie)).toBe(404);
  const stored = await queryRows(database.ownerUrl, 'SELECT * FROM admin_links');
  expect(JSON.stringify(stored)).not.toContain(second);
  await queryRows(database.ownerUrl, `UPDATE admin_links SET expires_at = now()`);
  expect(await use(second, cookie)).toBe(404);
  expect(await isAdmin(cookie)).toBe(false);
});

test('a user stored as an admin is not an admin if ADMIN_EMAILS does not list the address', async () => {
  const email = 'former@example.com';
  const cookie = await signUp(email);
  await queryRows(database.ownerUrl, `UPDATE users SET is_admin = true WHERE email = '${email}'`);
  expect(await isAdmin(cookie)).toBe(false);
});
