// @module-tag attack
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import {
  gatewayTokenContext,
  MAX_OF_NO_ACCOUNT,
} from '../../../src/accounts/installations/installations.js';
import { walletSite, type WalletSite } from '../../money/wallets/support.js';
import { queryRows } from '../../platform/database/catalog.js';
import { textsOfRows } from '../../platform/database/traces.js';

let site: WalletSite;
beforeAll(async () => {
  site = await walletSite();
});
afterAll(() => site?.close());
beforeEach(() => owner('DELETE FROM installations'));

const owner = (sql: string) => queryRows<Record<string, string>>(site.database.ownerUrl, sql);
const register = (body: object, { path = 'home', as }: { path?: string; as?: string } = {}) =>
  site.backend(as === undefined ? undefined : { id: as }, 'POST', `/api/register-${path}`, {
    body,
  });
const list = (query = '', as?: string) =>
  site.backend(as === undefined ? undefined : { id: as }, 'GET', `/api/installations${query}`);
const seen = (userId: string, minutes: number) =>
  owner(
    `UPDATE installations SET last_seen = now() - interval '${minutes} minutes', status = 'active'
      WHERE user_id = '${userId}'`,
  );

test('an installation registers, sends heartbeats and is listed', async () => {
  const userId = `of nobody/${randomUUID()}`;
  const { body, status } = await register({ userId, gatewayToken: 'a secret token' });
  const dashboard = `${site.dependencies.settings.http.webUrl}/dashboard?`;
  expect([status, body]).toEqual([
    200,
    {
      success: true,
      message: 'The installation is registered',
      dashboardUrl: dashboard + new URLSearchParams({ installation: userId }).toString(),
    },
  ]);
  const { body: listed } = await list();
  expect(listed).toEqual({
    success: true,
    count: 1,
    installations: [
      {
        ...{ userId, mode: 'home', status: 'active' },
        registeredAt: expect.any(String),
        lastSeen: expect.any(String),
      },
    ],
  });
  await seen(userId, 16);
  const statusOf = async () => (await list()).body.installations[0].status;
  expect(await statusOf()).toBe('inactive');
  await site.backend(undefined, 'POST', '/api/heartbeat', { body: { userId } });
  expect(await statusOf()).toBe('active');
  await seen(userId, 14);
  expect(await statusOf()).toBe('active');
});

test('registering again keeps the time of the first registration, and the token', async () => {
  const userId = randomUUID();
  await register({ userId, gatewayToken: 'a secret token' });
  const [before] = await owner(`SELECT * FROM installations`);
  await seen(userId, 60);
  expect((await register({ userId, mode: 'cloud' })).status).toBe(200);
  const [after] = await owner(`SELECT * FROM installations`);
  expect(after).toMatchObject({
    registered_at: before?.registered_at,
    sealed_gateway_token: before?.sealed_gateway_token,
    mode: 'cloud',
  });
  expect((await list()).body.installations).toMatchObject([{ mode: 'cloud', status: 'active' }]);
});

test.each([undefined, 'home', 'tower', 7, { deep: [true] }])(
  'an installation is linked with any mode: %j',
  async (mode) => {
    expect((await register({ userId: 'someone', mode }, { path: 'link' })).status).toBe(200);
    expect((await list()).body.installations).toMatchObject([{ mode: 'link' }]);
  },
);

test.each([
  [{}, 'userId'],
  [{ userId: '' }, 'userId'],
  [{ userId: 'x'.repeat(256) }, 'userId'],
  [{ userId: 'a\0b' }, 'cannot be stored'],
  [{ userId: 7 }, 'userId'],
  [{ userId: 'a', mode: 'tower' }, 'mode'],
  [{ userId: 'a', gatewayToken: 'x'.repeat(4_097) }, 'gatewayToken'],
  [{ userId: 'a', gatewayToken: 'ä'.repeat(2_049) }, 'gatewayToken'],
  [{ userId: 'a', gatewayToken: '' }, 'gatewayToken'],
])('rejects %j before anything is stored', async (body, field) => {
  const { status, text } = await register(body);
  expect([status, text]).toEqual([400, expect.stringContaining(field)]);
  expect((await list()).body.count).toBe(0);
});

test('a user id of 255 characters is accepted', async () => {
  expect((await register({ userId: 'x'.repeat(255) })).status).toBe(200);
});

test('the token is sealed, and in no answer, log, audit record or other row', async () => {
  const [userId, gatewayToken] = [randomUUID(), `secret-${randomUUID()}`];
  const headers = { 'idempotency-key': randomUUID() };
  const body = { userId, gatewayToken };
  const { text } = await site.backend(undefined, 'POST', '/api/register-home', { body, headers });
  const rows = (await textsOfRows(site.database.db.asPlatform())).join('\n');
  for (const reported of [text, rows, site.logged.join('\n'), (await list()).text]) {
    expect(reported).not.toContain(gatewayToken);
  }
  const [stored] = await owner('SELECT sealed_gateway_token AS sealed FROM installations');
  const { secrets } = site.dependencies;
  expect(secrets.open(stored?.sealed ?? '', gatewayTokenContext(userId))).toBe(gatewayToken);
  const audited = await owner(
    `SELECT actor, subject, detail::text AS detail FROM audit_log
      WHERE action = 'installation.register' ORDER BY id DESC LIMIT 1`,
  );
  expect(audited).toEqual([{ actor: 'operator', subject: userId, detail: '{"mode": "home"}' }]);
});

test('a list has pages, last seen first, and a user sees their own', async () => {
  const person = await site.person();
  const ids = ['a', 'b', 'c', person.id];
  for (const [n, userId] of ids.entries()) {
    await register({ userId });
    await seen(userId, n);
  }
  // Seen at the same time, to the microsecond.
  await owner(
    `UPDATE installations SET last_seen = now() - interval '5 minutes' WHERE user_id IN ('b', 'c')`,
  );
  const found: string[] = [];
  let query: string | undefined = '?limit=1';
  while (query !== undefined && found.length < 10) {
    const { body, headers } = await list(query);
    found.push(...body.installations.map(({ userId }: { userId: string }) => userId));
    query = /\?[^>]*/.exec(headers.get('link') ?? '')?.[0];
  }
  expect(found).toEqual(['a', person.id, 'c', 'b']);
  const own = await list('', person.id);
  expect(own.body).toMatchObject({ count: 1, installations: [{ userId: person.id }] });
});

test.each([['not a cursor'], ['["2026-13-01T00:00:00Z","a"]'], ['["now","a"]'], ['[]']])(
  'a list rejects the cursor %j',
  async (cursor) => {
    const encoded = Buffer.from(cursor).toString('base64url');
    expect((await list(`?cursor=${encoded}`)).status).toBe(400);
  },
);

test('a caller that speaks for a user registers no other installation', async () => {
  const person = await site.person();
  expect((await register({ userId: 'another' }, { as: person.id })).status).toBe(404);
  expect((await register({ userId: person.id }, { as: person.id })).status).toBe(200);
  expect((await list()).body.installations).toMatchObject([{ userId: person.id }]);
});

test('without the platform key nothing is registered or listed', async () => {
  for (const [authorization, status] of [
    ['', 401],
    ['Bearer wrong', 403],
  ] as const) {
    const headers = { authorization };
    const body = { userId: 'a' };
    for (const path of ['/api/register-home', '/api/register-link']) {
      expect((await site.backend(undefined, 'POST', path, { body, headers })).status).toBe(status);
    }
    expect((await site.backend(undefined, 'GET', '/api/installations', { headers })).status).toBe(
      status,
    );
  }
  expect((await list()).body.count).toBe(0);
});

test('admits one of fifty concurrent registrations to the last place without an account', async () => {
  await owner(
    `INSERT INTO installations (user_id, mode, registered_at, last_seen, status)
     SELECT 'of-nobody-' || n, 'home', now(), now(), 'active' FROM generate_series(2, ${MAX_OF_NO_ACCOUNT}) n`,
  );
  const answers = await Promise.all(
    Array.from({ length: 50 }, () => register({ userId: randomUUID() })),
  );
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
  const refused = answers.find(({ status }) => status !== 200);
  expect([refused?.status, refused?.body]).toEqual([
    409,
    expect.objectContaining({
      code: 'INSTALLATION_LIMIT_REACHED',
      current: MAX_OF_NO_ACCOUNT,
      limit: MAX_OF_NO_ACCOUNT,
    }),
  ]);
  const person = await site.person();
  expect((await register({ userId: person.id })).status).toBe(200);
  expect((await register({ userId: 'of-nobody-2', mode: 'cloud' })).status).toBe(200);
});

test('the deletion of an account includes the installation with its id', async () => {
  const person = await site.person();
  await register({ userId: person.id });
  await register({ userId: 'another' });
  await owner(`DELETE FROM users WHERE id = '${person.id}'`);
  expect((await list()).body.installations).toMatchObject([{ userId: 'another' }]);
});
