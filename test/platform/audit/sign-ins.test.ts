// @module-tag attack
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createBackend } from '../../../api/backend/backend.js';
import type { Listening } from '../../../api/http/server.js';
import { createWeb } from '../../../api/web/web.js';
import { Refusals } from '../../../src/platform/audit/refusals.js';
import { Database } from '../../../src/platform/database/database.js';
import { queryRows } from '../database/catalog.js';
import { bearer, postJson } from '../../api/http/support.js';
import { databaseAlone } from '../../support/dependencies.js';
import { keptLog } from '../../support/platform-environment.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';

const CREDENTIALS = { email: 'ada@example.com', password: 'an-old-password' };
const INTERNAL = 'the internal key of this test, long enough';

let database: TestDatabase;
let alone: Awaited<ReturnType<typeof databaseAlone>>;
let web: Listening;
let backend: Listening;
const { log, lines } = keptLog();

beforeAll(async () => {
  database = await testDatabase();
  const env = { INTERNAL_API_KEY: INTERNAL, TRUSTED_PROXIES: '127.0.0.1' };
  alone = await databaseAlone(database, log, env);
  web = await createWeb(alone.dependencies).listen('127.0.0.1', 0);
  backend = await createBackend(alone.dependencies).listen('127.0.0.1', 0);
});
afterAll(async () => {
  await Promise.all([web?.close(), backend?.close()]);
  await alone?.close();
  await database?.close();
});

/** The id of the last line that the previous test read: the audit log is never emptied. */
let seen = 0;
beforeEach(async () => {
  await audited();
});

interface Line {
  readonly action: string;
  readonly actor: string;
  readonly user_id: string | null;
  readonly subject: string;
  readonly detail: { readonly address: string; readonly count?: number };
}

async function audited(): Promise<Line[]> {
  await alone.dependencies.refusals.flush();
  const rows = await queryRows<Line & { readonly id: string }>(
    database.ownerUrl,
    `SELECT id, action, actor, user_id, subject, detail FROM audit_log WHERE id > ${seen} ORDER BY id`,
  );
  seen = Number(rows.at(-1)?.id ?? seen);
  return rows.map(({ id: _id, ...line }) => line);
}

const from = (address: string) => ({ 'x-forwarded-for': address });

const post = (path: string, body: unknown, headers: Record<string, string>) =>
  fetch(web.url + path, postJson(body, headers));

test('does not store a malformed address of a sign-in, which may be a password', async () => {
  const [typed, address] = ['my secret password', '192.0.2.9'];
  const credentials = { email: typed, password: typed };
  const { status } = await post('/api/auth/login', credentials, from(address));
  expect(status).toBe(401);
  expect(await audited()).toMatchObject([{ action: 'sign-in.failed', subject: '(no address)' }]);
  expect(lines.join()).not.toContain(typed);
});

test('the audit log has registrations, sign-ins and sign-outs with the client address', async () => {
  const registered = await post('/api/register', CREDENTIALS, from('192.0.2.1'));
  const { id } = (await registered.json()) as { id: string };
  const signedIn = await post('/api/auth/login', CREDENTIALS, from('192.0.2.2'));
  const cookie = signedIn.headers.get('set-cookie')?.split(';')[0] ?? '';
  await post('/api/auth/signout', undefined, { ...from('192.0.2.3'), cookie });
  const by = { actor: id, user_id: id, subject: id };
  expect(await audited()).toEqual([
    { action: 'account.register', ...by, detail: { address: '192.0.2.1' } },
    { action: 'session.create', ...by, detail: { address: '192.0.2.2' } },
    { action: 'session.delete', ...by, detail: { address: '192.0.2.3' } },
  ]);
  const line = lines.map((text) => JSON.parse(text) as Record<string, unknown>);
  expect(line).toContainEqual(
    expect.objectContaining({ path: '/api/auth/signout', address: '192.0.2.3', caller: id }),
  );
});

test('failed sign-ins are counted by address and account, without the password', async () => {
  const guess = { ...CREDENTIALS, email: 'Eve@example.com', password: 'a-guess' };
  for (let n = 0; n < 3; n++) await post('/api/auth/login', guess, from('192.0.2.4'));
  const log = await audited();
  expect(log).toMatchObject([
    { action: 'sign-in.failed', actor: 'anonymous', subject: 'eve@example.com' },
  ]);
  expect(log[0]?.detail).toMatchObject({ address: '192.0.2.4', count: 3 });
  expect(JSON.stringify(log)).not.toContain('a-guess');
});

test('refused keys are counted by listener and address', async () => {
  const ask = (path: string, key: string) =>
    fetch(backend.url + path, { headers: { ...bearer(key), ...from('192.0.2.5') } });
  expect((await ask('/api/agents', 'not the key')).status).toBe(403);
  expect((await ask('/v1/models', 'sk_not-a-key')).status).toBe(401);
  expect((await ask('/api/agents', INTERNAL)).status).toBe(200);
  const log = await audited();
  expect(log).toMatchObject([{ action: 'key.refused', subject: 'backend' }]);
  expect(log[0]?.detail).toMatchObject({ address: '192.0.2.5', count: 2 });
  expect(lines.join('\n')).not.toContain('not the key');
  expect(lines.join('\n')).toContain('"caller":"internal"');
});

test('a flood of refusals from many addresses makes few lines, and each refusal counts', async () => {
  const { refusals } = alone.dependencies;
  for (let n = 0; n < 5_000; n++) {
    refusals.note({ action: 'key.refused', subject: 'web', address: `192.0.2.${n % 250}` });
    refusals.note({ action: 'sign-in.failed', subject: `${n}@example.com`, address: '192.0.2.1' });
  }
  const log = await audited();
  expect(log.length).toBeLessThanOrEqual(22);
  expect(log.reduce((sum, { detail }) => sum + (detail.count ?? 0), 0)).toBe(10_000);
});

test('refusals kept during a database outage stay within the bound, and each counts', async () => {
  const refusals = new Refusals(database.db, keptLog().log);
  await queryRows(database.ownerUrl, 'ALTER TABLE audit_log RENAME TO audit_log_away');
  for (let minute = 0; minute < 5; minute++) {
    // The refusals of the previous minute are being written at the same time.
    const flushed = refusals.flush();
    for (let n = 0; n < 30; n++) {
      refusals.note({ action: 'key.refused', subject: 'web', address: `192.0.${minute}.${n}` });
    }
    await flushed;
  }
  await queryRows(database.ownerUrl, 'ALTER TABLE audit_log_away RENAME TO audit_log');
  await refusals.flush();
  const reported = await audited();
  expect(reported.length).toBeLessThanOrEqual(22);
  expect(reported.reduce((sum, { detail }) => sum + (detail.count ?? 0), 0)).toBe(150);
});

test('the log reports refusals that the database does not accept', async () => {
  const nowhere = new Database('postgres://nobody@127.0.0.1:1/nothing');
  const refusals = new Refusals(nowhere, log);
  for (let n = 0; n < 3; n++) {
    refusals.note({ action: 'key.refused', subject: 'web', address: '192.0.2.1' });
    await refusals.flush();
  }
  expect(
    lines.filter((line) => line.includes('audit log write of refusals failed, will retry')),
  ).toHaveLength(3);
  await nowhere.close();
});
