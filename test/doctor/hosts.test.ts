import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { examine } from '../../src/doctor/check.js';
import { ExaminedDatabase } from '../../src/doctor/examined-database.js';
import { checkHosts } from '../../src/doctor/hosts-check.js';
import { reportHost, type HostReport } from '../../src/agents/hosts/hosts.js';
import { queryRows } from '../platform/database/catalog.js';
import { testDatabase, type TestDatabase } from '../support/postgres.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterEach(() => asOwner('DELETE FROM hosts'));
afterAll(() => database?.close());

const asOwner = (sql: string) => queryRows(database.ownerUrl, sql);

const GUARDED = { status: 'guarded', reason: null, refuses: false } as const;

const report = (id: string, given: Partial<HostReport> = {}) =>
  reportHost(database.db, {
    id,
    capacity: 2,
    ports: { first: 19_100, last: 19_199 },
    engineAvailable: true,
    egress: GUARDED,
    ...given,
  });

async function findingsOf(env: Readonly<Record<string, string>> = {}): Promise<string[]> {
  const all = { DATABASE_URL: database.url, ...env };
  const examined = new ExaminedDatabase(all);
  try {
    const findings = await examine([examined.checkOf('hosts', checkHosts)], all);
    return findings.map(({ status, text }) => `${status}: ${text}`);
  } finally {
    await examined.close();
  }
}

const NONE_LEFT = 'failure: No host accepts another agent, see its lines.';

test('accepts a host that accepts agents', async () => {
  await report('one');
  expect(await findingsOf()).toEqual(['ok: Host one is ready; 0 of 2 places are occupied.']);
});

test('names a platform without a host', async () => {
  expect(await findingsOf()).toEqual([
    'failure: No host accepts another agent: start the worker of a Docker host.',
  ]);
});

test('names a host without Docker, a full disk and a silent worker', async () => {
  await report('disk', { disk: { free: 1, low: true } });
  await report('docker', { engineAvailable: false });
  await report('silent');
  await asOwner("UPDATE hosts SET seen_at = seen_at - interval '46 seconds' WHERE id = 'silent'");
  expect(await findingsOf()).toEqual([
    expect.stringMatching(/^failure: Host disk accepts no agents: its disk is nearly full/),
    expect.stringMatching(/^failure: Host docker accepts no agents: its Docker does not answer/),
    expect.stringMatching(/^failure: Host silent has not reported for 4\d s: start its worker/),
    NONE_LEFT,
  ]);
});

test('names a host whose rules of iptables cannot be set, with the reason', async () => {
  const reason = 'iptables: no such program';
  await report('one', { egress: { status: 'open', reason, refuses: true } });
  expect(await findingsOf()).toEqual([
    expect.stringMatching(/^failure: Host one accepts no agents: its networks would be open/),
    expect.stringContaining(
      'reach private networks and the host itself (iptables: no such program)',
    ),
    NONE_LEFT,
  ]);
});

test('warns of networks that the operator left open', async () => {
  await report('one', { egress: { status: 'open', reason: 'AGENT_EGRESS=open', refuses: false } });
  expect((await findingsOf({ AGENT_EGRESS: 'open' })).at(-1)).toMatch(/^warning: Agents on host/);
  expect((await findingsOf()).at(-1)).toMatch(/^failure: Agents on host one reach private/);
});

test('names a platform on which every place is occupied', async () => {
  await report('one', { capacity: 0 });
  expect(await findingsOf()).toEqual([
    expect.stringMatching(/^warning: Host one is full: 0 of 0 places .* AGENT_PORT_RANGE/),
    NONE_LEFT,
  ]);
});
