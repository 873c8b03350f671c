import { Worker } from '@temporalio/worker';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { createSecurityEventActivities } from '../../../activities/security-events.js';
import { addSession } from '../../../src/accounts/accounts/sessions.js';
import { Database } from '../../../src/platform/database/database.js';
import { EventEffects } from '../../../src/accounts/security-events/apply-events.js';
import { ProviderKeys } from '../../../src/accounts/security-events/provider-keys.js';
import { SecurityEvents } from '../../../src/accounts/security-events/receive-events.js';
import { securityEventRuns, type RowRuns } from '../../../temporal/row-runs.js';
import { securityEvents } from '../../../worker/handed-rows.js';
import { handOver, handOverPeriodically } from '../../../worker/hand-over.js';
import { PLATFORM_TASK_QUEUE } from '../../../workflows/ids.js';
import { queryRows } from '../../platform/database/catalog.js';
import { until } from '../../support/until.js';
import { newUser, testDatabase, type TestDatabase } from '../../support/postgres.js';
import { testSecrets } from '../../support/secrets.js';
import { testTemporal, workflowCode, type TestTemporal } from '../../support/temporal.js';
import { CLIENT_ID, keysServer, tokenOf, type KeysServer } from './support.js';

const log = pino({ level: 'silent' });

let database: TestDatabase;
let temporal: TestTemporal;
let provider: KeysServer;
let runs: RowRuns;
let userId: string;

beforeAll(async () => {
  [database, temporal, provider] = await Promise.all([
    testDatabase(),
    testTemporal(),
    keysServer(),
  ]);
  runs = securityEventRuns(temporal.client);
});
afterAll(async () => {
  await provider?.stop();
  await temporal?.close();
  await database?.close();
});
beforeEach(async () => {
  userId = await newUser(database);
  const place = { address: '192.0.2.1', requestId: 'a-request', userAgent: undefined };
  await database.db.asPlatform().transaction((db) => addSession(db, userId, 'password', place));
});
afterEach(() => queryRows(database.ownerUrl, 'DELETE FROM risc_events'));

/** Receives an event in a process that ends right after its response. @returns the row's id. */
async function receive(): Promise<string> {
  const process = new Database(database.url, { maxConnections: 1 });
  const { configurationUrl, issuer } = provider;
  const keys = new ProviderKeys({ configurationUrl });
  const trust = { issuer, clientIds: [CLIENT_ID], keys, retentionDays: 365 };
  const token = await tokenOf(provider, 'sessions-revoked', { email: `${userId}@example.com` });
  await new SecurityEvents(process, trust).receive(token, 'subject');
  await process.close();
  const [row] = await queryRows<{ id: string }>(
    database.ownerUrl,
    'SELECT id FROM risc_events ORDER BY received_at DESC LIMIT 1',
  );
  return row?.id ?? '';
}

const makeDue = () => queryRows(database.ownerUrl, 'UPDATE risc_events SET due_at = now()');

const isSignedIn = async () =>
  (await database.db.asUser(userId).query('SELECT FROM sessions')).length > 0;

/** Runs a worker that applies events until the work is done. */
async function withWorker(work: () => Promise<void>): Promise<void> {
  const { connection, namespace } = temporal;
  const worker = await Worker.create({
    connection,
    namespace,
    ...(await workflowCode()),
    taskQueue: PLATFORM_TASK_QUEUE,
    activities: createSecurityEventActivities(new EventEffects(database.db, testSecrets())),
  });
  await worker.runUntil(work);
}

test('applies an event that was received before every process died', async () => {
  const id = await receive();
  const { client } = temporal;
  await withWorker(async () => {
    const ending = new AbortController();
    const parts = { database: database.db, log };
    const handing = handOverPeriodically(parts, securityEvents(runs), ending.signal);
    await until(async () => !(await isSignedIn()));
    ending.abort();
    await handing;
    const handle = client.workflow.getHandle(`risc-${id}`);
    expect(await handle.result()).toMatchObject([{ effect: 'signed-out' }]);
  });
});

test('restarts a terminated run, and starts no second run while one is in flight', async () => {
  const id = await receive();
  const handOverEvents = () => handOver(database.db, securityEvents(runs));
  await handOverEvents();
  const handle = temporal.client.workflow.getHandle(`risc-${id}`);
  const { runId } = await handle.describe();
  await makeDue();
  await handOverEvents();
  expect((await handle.describe()).runId).toBe(runId);
  await handle.terminate();
  await makeDue();
  await handOverEvents();
  expect((await handle.describe()).runId).not.toBe(runId);
  await withWorker(async () => void (await handle.result()));
  expect(await isSignedIn()).toBe(false);
  await makeDue();
  expect(await handOverEvents()).toBe(0);
});
