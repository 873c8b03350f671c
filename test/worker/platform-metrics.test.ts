import { randomUUID, X509Certificate } from 'node:crypto';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Database } from '../../src/platform/database/database.js';
import { exportCertificate, exportLedger, exportPlatform } from '../../worker/platform-metrics.js';
import { HOST_CERTIFICATE } from '../agents/hosts/certificate.js';
import type { OperationRow } from '../../src/platform/database/models.js';
import { queryRows } from '../platform/database/catalog.js';
import { insertSql, ROWS } from '../platform/database/rows.js';
import { testDatabase, type TestDatabase } from '../support/postgres.js';

const USER = 'alice';

let made: TestDatabase;
beforeAll(async () => {
  made = await testDatabase();
  await queryRows(made.ownerUrl, insertSql('users', ROWS.users?.(USER, 1) ?? {}));
});
afterAll(() => made?.close());

/** Creates an operation of an agent of its own. */
async function openOperation(
  values: Pick<OperationRow, 'kind' | 'status'> & Partial<OperationRow>,
) {
  const agentId = randomUUID();
  const names = { id: agentId, userId: USER, name: agentId, subdomain: agentId };
  const kind = { plan: 'solo', model: 'provider/model', aiProvider: 'provider' } as const;
  await made.db.asUser(USER).transaction(async (db) => {
    await db.Agent.create({ ...names, ...kind, startedAt: new Date() });
    await db.Operation.create({ id: randomUUID(), agentId, userId: USER, ...values });
  });
}

/** Returns the values of our metrics by name and labels. */
async function valuesIn(registry: Registry): Promise<Readonly<Record<string, number>>> {
  const lines = (await registry.metrics()).split('\n').filter((line) => line.startsWith('aps_'));
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))]),
  );
}

test('exports hosts by status, and the ages of the oldest operations', async () => {
  const none = new Registry();
  exportPlatform(none, made.db);
  expect(await valuesIn(none)).toMatchObject({
    'aps_operation_oldest_seconds{state="requested"}': 0,
    'aps_operation_oldest_seconds{state="running"}': 0,
    'aps_hosts{status="silent"}': 0,
  });

  await made.db.asPlatform().transaction(async (db) => {
    await db.query(
      `INSERT INTO hosts (id, capacity, first_port, last_port, engine_available, seen_at, created_at, updated_at)
       VALUES ('well', 1, 1, 2, true, now(), now(), now()),
              ('gone', 1, 1, 2, true, now() - interval '46 s', now(), now())`,
    );
  });
  const ago = (seconds: number) => new Date(Date.now() - seconds * 1_000);
  await openOperation({ kind: 'start', status: 'requested', requestedAt: ago(100) });
  const begun = { requestedAt: ago(5_000), admittedAt: ago(2_000) };
  await openOperation({ kind: 'start', status: 'running', ...begun });
  const finishedAt = new Date();
  await openOperation({ kind: 'stop', status: 'failed', requestedAt: ago(9_000), finishedAt });
  const registry = new Registry();
  exportPlatform(registry, made.db);
  const values = await valuesIn(registry);
  expect(values).toMatchObject({
    'aps_hosts{status="ready"}': 1,
    'aps_hosts{status="silent"}': 1,
  });
  expect(values['aps_operation_oldest_seconds{state="requested"}']).toBeCloseTo(100, -1.5);
  expect(values['aps_operation_oldest_seconds{state="running"}']).toBeCloseTo(2_000, -1.5);
});

test('exports no figure of an unreachable database', async () => {
  const away = new Database('postgres://nobody@127.0.0.1:1/nothing');
  const registry = new Registry();
  exportPlatform(registry, away);
  expect(await valuesIn(registry)).toEqual({});
  await away.close();
});

test('exports the last check of the ledger, and its differences for two hours', async () => {
  let now = 1_000_000;
  const registry = new Registry();
  const record = exportLedger(registry, () => now);
  expect(await valuesIn(registry)).toEqual({});
  record(3);
  const checked = { aps_ledger_checked_timestamp_seconds: 1_000 };
  expect(await valuesIn(registry)).toEqual({ ...checked, aps_ledger_differences: 3 });
  now += 2 * 60 * 60_000;
  expect(await valuesIn(registry)).toEqual(checked);
});

test("exports the end of a host's certificate", async () => {
  const registry = new Registry();
  exportCertificate(registry, HOST_CERTIFICATE);
  const end = Date.parse(new X509Certificate(HOST_CERTIFICATE).validTo) / 1_000;
  expect(await valuesIn(registry)).toEqual({ aps_host_certificate_end_timestamp_seconds: end });
});
