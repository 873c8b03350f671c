import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { EventSigner } from '../../../dev/security-events/event-signer.js';
import type { Listening } from '../../../api/http/server.js';
import { createWeb } from '../../../api/web/web.js';
import { Database } from '../../../src/platform/database/database.js';
import { EVENT_TYPES } from '../../../src/accounts/security-events/event-types.js';
import { tokenHash } from '../../../src/platform/secrets/token-hash.js';
import { queryRows } from '../../platform/database/catalog.js';
import { databaseAlone } from '../../support/dependencies.js';
import { call } from '../../support/http.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';
import { claimsOf, environmentOf, keysServer, tokenOf, type KeysServer } from './support.js';

const PATH = '/api/security/risc';
const LEGACY_PATH = '/api/auth/google/risc';

let database: TestDatabase;
let provider: KeysServer;
/** Two serving processes. */
let first: Listening;
let second: Listening;
/** A process without an identity provider. */
let unconfigured: Listening;
const cleanups: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  [database, provider] = await Promise.all([testDatabase(), keysServer()]);
  cleanups.push(() => provider.stop());
  const listening = async (db: Database, env: Record<string, string>) => {
    const alone = await databaseAlone({ db, url: database.url }, undefined, {
      WEB_URL: 'https://agents.example.com',
      ALLOWED_HOSTS: '127.0.0.1',
      ...env,
    });
    const web = await createWeb(alone.dependencies).listen('127.0.0.1', 0);
    cleanups.push(async () => {
      await web.close();
      await alone.close();
    });
    return web;
  };
  first = await listening(database.db, environmentOf(provider));
  const other = new Database(database.url, { maxConnections: 5 });
  cleanups.push(() => other.close());
  second = await listening(other, environmentOf(provider));
  unconfigured = await listening(database.db, {});
});
afterAll(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
  await database?.close();
});
beforeEach(() => queryRows(database.ownerUrl, 'DELETE FROM risc_events'));

const rows = () => queryRows(database.ownerUrl, 'SELECT * FROM risc_events ORDER BY received_at');

const send = (token: string, { path = PATH, to = first, type = 'application/secevent+jwt' } = {}) =>
  call(to.url, 'POST', path, { body: token, headers: { 'content-type': type } });

describe('received security events', () => {
  test('answers 202 without a body after recording the event', async () => {
    const claims = claimsOf(provider, 'sessions-revoked', { sub: '1', email: 'ada@example.com' });
    const [signer] = provider.signers as [EventSigner];
    const iat = Math.floor(Date.now() / 1_000) - 3_600;
    const { status, text } = await send(await signer.sign({ ...claims, iat }));
    expect([status, text]).toEqual([202, '']);
    const type = EVENT_TYPES['sessions-revoked'];
    expect(await rows()).toEqual([
      {
        jti: claims.jti,
        id: tokenHash(String(claims.jti)),
        issuer: provider.issuer,
        matching: 'subject',
        events: [{ type, sub: '1', email: 'ada@example.com' }],
        happened_at: new Date(iat * 1_000 + 999),
        issued_at: new Date(iat * 1_000),
        received_at: expect.any(Date),
        due_at: expect.any(Date),
        applied_at: null,
        outcomes: null,
      },
    ]);
  });

  test.each(['application/json', 'text/plain; charset=utf-8', 'application/x-www-form-urlencoded'])(
    'accepts an event with any content type, such as %s',
    async (type) => {
      const token = await tokenOf(provider, 'verification', { sub: '1' });
      expect((await send(`\n${token}\r\n`, { type })).status).toBe(202);
    },
  );

  test('treats an event with a future time as happening now', async () => {
    const [signer] = provider.signers as [EventSigner];
    const claims = { ...claimsOf(provider, 'verification', { sub: '1' }), iat: 4_000_000_000 };
    await send(await signer.sign(claims));
    await send(await signer.sign({ ...claims, jti: 'another', iat: 1e300 }));
    const [row, other] = await rows();
    expect(Number(row?.happened_at)).toBeLessThanOrEqual(Date.now());
    expect(Number(other?.happened_at)).toBeLessThanOrEqual(Date.now());
  });

  test('acknowledges a repeated event without effect, at the legacy receiver too', async () => {
    const token = await tokenOf(provider, 'sessions-revoked', { sub: '1' });
    await send(token);
    await queryRows(database.ownerUrl, `UPDATE risc_events SET applied_at = now(), events = '[]'`);
    const before = await rows();
    expect((await send(token)).status).toBe(202);
    expect((await send(token, { path: LEGACY_PATH })).status).toBe(202);
    expect(await rows()).toEqual(before);
  });

  test('acknowledges an event that an earlier release has stored by its digest, without effect', async () => {
    const claims = claimsOf(provider, 'sessions-revoked', { sub: '1' });
    const [signer] = provider.signers as [EventSigner];
    await queryRows(
      database.ownerUrl,
      `INSERT INTO risc_events (id, issuer, matching, events, happened_at)
       VALUES ('${tokenHash(String(claims.jti))}', 'x', 'subject', '[]', now())`,
    );
    const before = await rows();
    expect((await send(await signer.sign(claims))).status).toBe(202);
    expect(await rows()).toEqual(before);
  });

  test('stores the longest id with any characters', async () => {
    const [signer] = provider.signers as [EventSigner];
    const jti = '\u{1f600}'.repeat(512);
    const claims = claimsOf(provider, 'sessions-revoked', { sub: '1' });
    expect((await send(await signer.sign({ ...claims, jti }))).status).toBe(202);
    expect(await rows()).toMatchObject([{ jti }]);
  });

  test('records one event for fifty concurrent deliveries to two processes', async () => {
    const token = await tokenOf(provider, 'sessions-revoked', { sub: '1' });
    const sent = Array.from({ length: 50 }, (_, n) => send(token, { to: n % 2 ? first : second }));
    const statuses = (await Promise.all(sent)).map(({ status }) => status);
    expect([...new Set(statuses)]).toEqual([202]);
    expect(await rows()).toHaveLength(1);
  });

  test('matches an event at the legacy receiver by its email address', async () => {
    const token = await tokenOf(provider, 'sessions-revoked', { email: 'ada@example.com' });
    const { status, text } = await send(token, { path: LEGACY_PATH });
    expect([status, text]).toEqual([202, '']);
    expect(await rows()).toMatchObject([{ matching: 'email' }]);
  });
});

describe('refused deliveries', { tags: 'attack' }, () => {
  test.each([PATH, LEGACY_PATH])(
    'stores nothing at %s for a refused token, and answers with the reason',
    async (path) => {
      const forger = await EventSigner.create();
      const claims = claimsOf(provider, 'sessions-revoked', { sub: '1' });
      const [signer] = provider.signers as [EventSigner];
      const { jti: _jti, ...unnamed } = claims;
      for (const [token, err] of [
        ['', 'invalid_request'],
        ['{"sub": "1"}', 'invalid_request'],
        ['\xff\xfe', 'invalid_request'],
        [await signer.sign(unnamed), 'invalid_request'],
        [await signer.sign({ ...claims, jti: 'x'.repeat(513) }), 'invalid_request'],
        [await signer.sign({ ...claims, iat: 1_508_184_845 }), 'invalid_request'],
        [await signer.sign({ ...claims, iat: undefined }), 'invalid_request'],
        [await signer.sign({ ...claims, iss: 'https://evil.example.com' }), 'invalid_issuer'],
        [await signer.sign({ ...claims, aud: 'somebody else' }), 'invalid_audience'],
        [await forger.sign(claims), 'invalid_key'],
        [`${(await signer.sign(claims)).slice(0, -8)}AAAAAAAA`, 'authentication_failed'],
      ] as const) {
        const { status, body } = await send(token, { path });
        expect([status, body]).toEqual([400, { error: expect.any(String), err }]);
      }
      expect(await rows()).toEqual([]);
    },
  );

  test('refuses a body over 64 KiB with any content', async () => {
    expect((await send('x'.repeat(64 * 1024))).status).toBe(400);
    expect((await send('x'.repeat(64 * 1024 + 1))).status).toBe(413);
  });
});

describe('deliveries that the sender retries', () => {
  test('answers 500 when the keys are unavailable, so that the sender retries', async () => {
    const away = await keysServer();
    const env = { ...environmentOf(provider), IDP_RISC_CONFIGURATION_URL: away.configurationUrl };
    await away.stop();
    const alone = await databaseAlone(database, undefined, env);
    const web = await createWeb(alone.dependencies).listen('127.0.0.1', 0);
    try {
      const token = await tokenOf(provider, 'verification', { sub: randomUUID() });
      const { status, body } = await send(token, { to: web });
      expect([status, body.err]).toEqual([500, undefined]);
      // A body that cannot come from the provider is refused without keys.
      expect((await send('x', { to: web })).status).toBe(400);
    } finally {
      await web.close();
      await alone.close();
    }
  });

  test('answers 503 without an identity provider, so that the sender retries', async () => {
    const token = await tokenOf(provider, 'verification', { sub: '1' });
    for (const path of [PATH, LEGACY_PATH]) {
      expect((await send(token, { path, to: unconfigured })).status).toBe(503);
    }
  });
});

test('describes its address and the accepted events', async () => {
  const { status, body } = await call(first.url, 'GET', PATH);
  expect([status, body]).toEqual([
    200,
    {
      status: 'active',
      endpoint: `https://agents.example.com${PATH}`,
      events: [
        'https://schemas.openid.net/secevent/risc/event-type/account-disabled',
        'https://schemas.openid.net/secevent/risc/event-type/account-enabled',
        'https://schemas.openid.net/secevent/risc/event-type/sessions-revoked',
        'https://schemas.openid.net/secevent/oauth/event-type/tokens-revoked',
        'https://schemas.openid.net/secevent/risc/event-type/account-credential-change-required',
        'https://schemas.openid.net/secevent/risc/event-type/verification',
      ],
    },
  ]);
  const other = await call(unconfigured.url, 'GET', PATH);
  expect(other.body).toEqual({ ...body, status: 'not_configured' });
});
