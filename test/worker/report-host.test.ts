import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { Database } from '../../src/platform/database/database.js';
import { DockerHost } from '../../src/docker/containers/docker-host.js';
import { HostLease } from '../../worker/report-host.js';
import { queryRows } from '../platform/database/catalog.js';
import { keptLog } from '../support/platform-environment.js';
import { until } from '../support/until.js';
import { testDatabase, type TestDatabase } from '../support/postgres.js';

let database: TestDatabase;
let stop = new AbortController();

beforeAll(async () => {
  database = await testDatabase();
});
afterEach(() => {
  stop.abort();
  stop = new AbortController();
});
afterAll(() => database?.close());

const HOST = { capacity: 7, ports: { first: 19_100, last: 19_199 } };

/** A Docker address without a daemon. */
const nowhere = new DockerHost({ dockerHost: 'unix:///nowhere/docker.sock' });

const rowOf = async (id: string) => {
  const rows = await queryRows<{ seen_at: Date } & Record<string, unknown>>(
    database.ownerUrl,
    `SELECT * FROM hosts WHERE id = '${id}'`,
  );
  return rows[0];
};

test('stores the host at once with the values of its worker', async () => {
  const id = randomUUID();
  const { log } = keptLog();
  const reporting = { database: database.db, docker: nowhere, host: { ...HOST, id }, log };
  await new HostLease(reporting).report();
  expect(await rowOf(id)).toMatchObject({
    capacity: 7,
    first_port: 19_100,
    last_port: 19_199,
    engine_available: false,
  });
});

test('updates the host row repeatedly, and sooner while its Docker is unavailable', async () => {
  const id = randomUUID();
  const { log } = keptLog();
  const reporting = { database: database.db, docker: nowhere, host: { ...HOST, id }, log };
  const lease = new HostLease(reporting);
  await lease.report();
  void lease.keep(stop.signal);
  const first = await rowOf(id);
  const again = await until(async () => {
    const row = await rowOf(id);
    return row && first && row.seen_at > first.seen_at && row;
  });
  expect(again.created_at).toEqual(first?.created_at);
});

test('an unreachable database is logged and has no other effect', async () => {
  const { log, lines } = keptLog();
  const away = new Database('postgres://nobody@127.0.0.1:1/nothing', { maxConnections: 1 });
  const host = { ...HOST, id: randomUUID() };
  const lease = new HostLease({ database: away, docker: nowhere, host, log });
  await lease.report();
  expect(lines.join()).toContain("the host's report could not be stored");
  expect(lease.isDoubtful).toBe(false);
  await away.close();
});

test('a lease is doubtful while the database answers but the engine has not identified itself', async () => {
  const { log } = keptLog();
  const host = { ...HOST, id: randomUUID() };
  const lease = new HostLease({ database: database.db, docker: nowhere, host, log });
  await lease.report();
  expect(lease.isDoubtful).toBe(true);
});
