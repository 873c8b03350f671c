import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { HostNameTakenError } from '../../src/agents/hosts/hosts.js';
import { HostLease, type HostReporting, RuntimeMissingError } from '../../worker/report-host.js';
import { queryRows } from '../platform/database/catalog.js';
import { insertSql, ROWS } from '../platform/database/rows.js';
import { keptLog } from '../support/platform-environment.js';
import { testDatabase, type TestDatabase } from '../support/postgres.js';

let database: TestDatabase;
let stop = new AbortController();

beforeAll(async () => {
  database = await testDatabase();
  await asOwner(insertSql('users', ROWS.users!('alice', 1)));
});
afterEach(async () => {
  stop.abort();
  stop = new AbortController();
  await asOwner('DELETE FROM agents; DELETE FROM hosts');
});
afterAll(() => database?.close());

const asOwner = (sql: string) => queryRows<Record<string, unknown>>(database.ownerUrl, sql);

const GIB = 1024 ** 3;
const MEMORY = 32 * GIB;

/** Creates a lease on a machine whose engine has this id, or does not answer if it is undefined. */
function machine(
  engine: string | undefined,
  id = 'one',
  takeoverFrom?: string,
  given: Partial<HostReporting> = {},
) {
  const says = { engine, remapped: false };
  const docker = {
    available: () => Promise.resolve(says.engine !== undefined),
    engine: () =>
      Promise.resolve(
        says.engine === undefined
          ? undefined
          : {
              id: says.engine,
              memoryBytes: MEMORY,
              runtimes: ['runc'],
              weighsDisks: false,
              usersFrom: says.remapped ? { uid: 100_000, gid: 100_000 } : undefined,
            },
      ),
    disk: { space: () => Promise.resolve(undefined) },
  };
  const { log } = keptLog();
  const reporting = {
    database: database.db,
    docker,
    host: { id, capacity: undefined, ports: { first: 19_100, last: 19_199 } },
    takeoverFrom,
    log,
    ...given,
  };
  return { says, lease: new HostLease(reporting) };
}

async function isHeld({ lease }: ReturnType<typeof machine>): Promise<boolean> {
  await lease.report();
  const reported = new AbortController();
  const outcome = Promise.race([
    lease.held(reported.signal).then(() => !reported.signal.aborted),
    new Promise((resolve) => setTimeout(resolve, 20)).then(() => false),
  ]);
  const held = await outcome;
  reported.abort();
  return held;
}

const engineOf = async (id: string) =>
  (await asOwner(`SELECT engine_id FROM hosts WHERE id = '${id}'`))[0]?.engine_id;
const silence = (id: string) =>
  asOwner(`UPDATE hosts SET seen_at = now() - interval '45 seconds' WHERE id = '${id}'`);
const placeAgent = (host: string) =>
  asOwner(
    insertSql('agents', {
      ...ROWS.agents!('alice', 1),
      id: randomUUID(),
      host,
      desired: 'running',
      status: 'active',
    }) + `; UPDATE agents SET deleted_at = NULL`,
  );

describe('lease of a host name', () => {
  test('a host name is leased to the first engine, and another machine is refused', async () => {
    expect(await isHeld(machine('A'))).toBe(true);
    const refused = machine('B').lease.report();
    await expect(refused).rejects.toThrow(HostNameTakenError);
    await expect(refused).rejects.toThrow(
      /^The host name "one" belongs to another Docker engine, A, with 0 agents \(last report \d+ s ago\)/,
    );
    expect(await engineOf('one')).toBe('A');
    expect(await isHeld(machine('A'))).toBe(true);
  });

  test('a host name is shared by all workers of its engine, which may hold other names too', async () => {
    expect(await isHeld(machine('A'))).toBe(true);
    expect(await isHeld(machine('A'))).toBe(true);
    expect(await isHeld(machine('A', 'two'))).toBe(true);
  });

  test('a host name is not leased to an engine that does not answer, and the host row is unchanged', async () => {
    await machine('A').lease.report();
    const [before] = await asOwner(`SELECT * FROM hosts WHERE id = 'one'`);
    const silent = machine(undefined);
    expect(await isHeld(silent)).toBe(false);
    expect(await asOwner(`SELECT * FROM hosts WHERE id = 'one'`)).toEqual([before]);
    silent.says.engine = 'A';
    expect(await isHeld(silent)).toBe(true);
  });

  test('an engine that is unavailable for a while keeps its host name', async () => {
    const one = machine('A');
    expect(await isHeld(one)).toBe(true);
    one.says.engine = undefined;
    expect(await isHeld(one)).toBe(true);
    const [row] = await asOwner(`SELECT * FROM hosts WHERE id = 'one'`);
    expect(row).toMatchObject({ engine_id: 'A', engine_available: false });
  });

  test('any engine can acquire an expired host name without agents', async () => {
    await machine('A').lease.report();
    await silence('one');
    expect(await isHeld(machine('B'))).toBe(true);
    await expect(machine('A').lease.report()).rejects.toThrow(HostNameTakenError);
  });

  test('a host name with agents is taken over only from a dead engine that the setting names', async () => {
    await machine('A').lease.report();
    await placeAgent('one');
    const takesOver = machine('B', 'one', 'A');
    await expect(takesOver.lease.report()).rejects.toThrow(HostNameTakenError);
    await silence('one');
    await expect(machine('B').lease.report()).rejects.toThrow('set AGENT_HOST_TAKEOVER=A');
    await expect(machine('B', 'one', 'C').lease.report()).rejects.toThrow(HostNameTakenError);
    expect(await isHeld(takesOver)).toBe(true);
    const audit = `SELECT actor, detail FROM audit_log WHERE action = 'host.takeover'
                    AND detail ->> 'agents' = '1'`;
    expect(await asOwner(audit)).toEqual([
      { actor: 'worker', detail: { from: 'A', to: 'B', agents: 1 } },
    ]);
    // The setting may stay: it does not apply to any other engine.
    await expect(machine('C', 'one', 'A').lease.report()).rejects.toThrow(HostNameTakenError);
  });

  test('a host name is refused to all engines while the host is being removed', async () => {
    await machine('A').lease.report();
    await asOwner(`UPDATE hosts SET removed_at = now() WHERE id = 'one'`);
    const [before] = await asOwner(`SELECT * FROM hosts WHERE id = 'one'`);
    for (const engine of ['A', 'B']) {
      await expect(machine(engine).lease.report()).rejects.toThrow('is being removed');
    }
    expect(await asOwner(`SELECT * FROM hosts WHERE id = 'one'`)).toEqual([before]);
  });

  test('an engine whose id has changed loses its host name, and its worker ends', async () => {
    const one = machine('A');
    await one.lease.report();
    await placeAgent('one');
    one.says.engine = 'A2';
    await expect(one.lease.report()).rejects.toThrow('belongs to another Docker engine, A,');
  });
});

describe('capacity of a host', () => {
  const capacityIn = async (id: string) =>
    (await asOwner(`SELECT capacity FROM hosts WHERE id = '${id}'`))[0]?.capacity;

  test(
    "the capacity is derived from the machine's memory and kept while the engine does not answer",
    { tags: 'attack' },
    async () => {
      const one = machine(undefined);
      await one.lease.report();
      expect(await capacityIn('one')).toBe(0);
      one.says.engine = 'A';
      await one.lease.report();
      expect(await capacityIn('one')).toBe(10);
      one.says.engine = undefined;
      await one.lease.report();
      expect(await capacityIn('one')).toBe(10);
    },
  );

  test('the capacity is limited by the number of ports, unless an operator sets another value', async () => {
    const ports = { first: 19_100, last: 19_102 };
    await machine('A', 'few', undefined, {
      host: { id: 'few', capacity: undefined, ports },
    }).lease.report();
    expect(await capacityIn('few')).toBe(3);
    await machine('A', 'many', undefined, {
      host: { id: 'many', capacity: 900, ports },
    }).lease.report();
    expect(await capacityIn('many')).toBe(900);
  });
});

test('the host row shows user namespace remapping once the engine has answered, and keeps it', async () => {
  const known = async () =>
    (await asOwner(`SELECT user_namespaces AS known FROM hosts WHERE id = 'one'`))[0]?.known;
  const one = machine(undefined);
  await one.lease.report();
  expect(await known()).toBe(null);
  one.says.engine = 'A';
  await one.lease.report();
  expect(await known()).toBe(false);
  one.says.remapped = true;
  await one.lease.report();
  expect(await known()).toBe(true);
  one.says.engine = undefined;
  await one.lease.report();
  expect(await known()).toBe(true);
});

describe('configured container runtime', () => {
  test('a configured runtime that Docker has is accepted', async () => {
    expect(await isHeld(machine('A', 'one', undefined, { runtime: 'runc' }))).toBe(true);
  });

  test('a configured runtime that Docker lacks ends the worker before any agent starts', async () => {
    const one = machine(undefined, 'one', undefined, { runtime: 'runsc' });
    expect(await isHeld(one)).toBe(false);
    one.says.engine = 'A';
    await expect(one.lease.report()).rejects.toThrow(RuntimeMissingError);
    await expect(one.lease.report()).rejects.toThrow(
      'Docker lacks the runtime "runsc" that AGENT_CONTAINER_RUNTIME requires; it has only runc',
    );
  });
});
