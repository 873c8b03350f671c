import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Listening } from '../../../api/http/server.js';
import { createWeb } from '../../../api/web/web.js';
import { sendEvent } from '../../../dev/accounts/send-event.js';
import { readKept } from '../../../dev/accounts/kept-accounts.js';
import {
  ANY_PORTS,
  issuerOf,
  startStandIns,
  type StandIns,
} from '../../../dev/accounts/stand-ins.js';
import { StartFailure } from '../../../dev/failure.js';
import { lockDataDir } from '../../../dev/lock.js';
import { databaseAlone } from '../../support/dependencies.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';

const noProviderIn = (dataDir: string) =>
  `No identity provider has run on ${dataDir}: start npm run dev:accounts, or set DATA_DIR to the platform's data folder.`;

const place = { dataDir: '', webUrl: '' };
let standIns: StandIns;
let database: TestDatabase;
let alone: Awaited<ReturnType<typeof databaseAlone>>;
let web: Listening;

beforeAll(async () => {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'aps-stand-ins-'));
  place.dataDir = dataDir;
  standIns = await startStandIns({ dataDir, webUrl: 'http://127.0.0.1:3000' }, ANY_PORTS);
  database = await testDatabase();
  alone = await databaseAlone(database, undefined, standIns.env);
  web = await createWeb(alone.dependencies).listen('127.0.0.1', 0);
  place.webUrl = web.url;
});
afterAll(async () => {
  await web?.close();
  await alone?.close();
  await database?.close();
  await standIns?.close();
  await rm(place.dataDir, { recursive: true, force: true });
});

test("the platform accepts an event signed with the stand-in provider's published key", async () => {
  await sendEvent(place, ['sessions-revoked', 'ada@example.com']);
  const rows = await database.db.asPlatform().query('SELECT FROM risc_events');
  expect(rows).toHaveLength(1);
});

test('an invalid event or data folder fails with a readable message', async () => {
  await expect(sendEvent(place, ['sessions-ended', 'ada@example.com'])).rejects.toThrow(
    StartFailure,
  );
  const elsewhere = { ...place, dataDir: path.join(place.dataDir, 'none') };
  const sent = sendEvent(elsewhere, ['sessions-revoked', 'ada@example.com']);
  await expect(sent).rejects.toThrow(new StartFailure(noProviderIn(elsewhere.dataDir)));
});

test('an unreachable platform fails with a message that names its address', async () => {
  const nobody = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1');
  await once(nobody, 'listening');
  const webUrl = `http://127.0.0.1:${(nobody.address() as AddressInfo).port}`; // a TCP address is never a string
  const sent = sendEvent({ ...place, webUrl }, ['sessions-revoked', 'ada@example.com']);
  await expect(sent).rejects.toThrow(StartFailure);
  await expect(sent).rejects.toThrow(webUrl);
  nobody.close();
});

test('a second start beside a running platform keeps the stored addresses', async () => {
  const unlock = await lockDataDir(place.dataDir, 'http://127.0.0.1:3000');
  const before = readKept(place.dataDir);
  await expect(startStandIns(place, ANY_PORTS)).rejects.toThrow('The platform already runs here');
  expect(readKept(place.dataDir)).toEqual(before);
  unlock();
});

test("stores the stand-ins' addresses and key for the next start", () => {
  const kept = readKept(place.dataDir);
  expect(kept && issuerOf(kept)).toBe(standIns.env.IDP_ISSUER_URL);
  const { CODEHOST_URL = '', SMTP_URL = '' } = standIns.env;
  expect(kept?.ports).toMatchObject({
    codeHost: Number(new URL(CODEHOST_URL).port),
    mail: Number(new URL(SMTP_URL).port),
  });
});
