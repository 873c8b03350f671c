import { Registry } from 'prom-client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Database } from '../../../src/platform/database/database.js';
import { databaseChecks } from '../../../src/platform/operators/database-checks.js';
import { exportPools } from '../../../src/platform/operators/database-metrics.js';
import { Readiness } from '../../../src/platform/operators/readiness.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';

let made: TestDatabase;
let database: Database;
beforeAll(async () => {
  made = await testDatabase();
  database = new Database(made.url, { maxConnections: 1 });
});
afterAll(async () => {
  await database?.close();
  await made?.close();
});

test('exports busy and idle connections of both pools, and who waits for one', async () => {
  const registry = new Registry();
  exportPools(registry, database);
  const figures = async () =>
    (await registry.metrics()).split('\n').filter((line) => line.startsWith('aps_'));
  await database.ping();
  await database.asPlatform().transaction(async () => {
    const waits = database.asPlatform().transaction(() => Promise.resolve());
    void waits.catch(() => undefined);
    await expect
      .poll(figures)
      .toEqual([
        'aps_database_connections{pool="statements",state="busy"} 0',
        'aps_database_connections{pool="statements",state="idle"} 1',
        'aps_database_connections{pool="transactions",state="busy"} 1',
        'aps_database_connections{pool="transactions",state="idle"} 0',
        'aps_database_waiting{pool="statements"} 0',
        'aps_database_waiting{pool="transactions"} 1',
      ]);
  });
});

test('checks that PostgreSQL answers and that the schema fits', async () => {
  const good = new Readiness(databaseChecks(database));
  expect((await good.read()).checks).toMatchObject({
    database: { ok: true },
    schema: { ok: true },
  });

  const away = new Database('postgres://nobody@127.0.0.1:1/nothing');
  try {
    const { checks } = await new Readiness(databaseChecks(away)).read();
    expect(checks.database).toEqual({ ok: false, reason: expect.stringContaining('ECONNREFUSED') });
    expect(checks.schema).toMatchObject({ ok: false });
  } finally {
    await away.close();
  }
});
