import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  MemoryFullError,
  MemorySizes,
  type UsedMemory,
} from '../../../src/agents/memory/memory-sizes.js';
import { DockerRefusedError } from '../../../src/docker/containers/container-errors.js';
import type { DockerHost } from '../../../src/docker/containers/docker-host.js';
import type { VolumeUse } from '../../../src/docker/containers/volume-meter.js';
import type { AgentRow, AgentVolumeRow } from '../../../src/platform/database/models.js';
import { queryRows } from '../../platform/database/catalog.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';

const USER = 'operator';
const MIB = 1024 ** 2;
const LIMIT = 100 * MIB;
/** The lowest limit on files, regardless of the limit on bytes. */
const MOST_FILES = 100_000;

let database: TestDatabase;
/** Measured use of each volume; volumes without an entry cannot be measured by Docker. */
const uses = new Map<string, Partial<VolumeUse>>();
let sizes: MemorySizes;
/** Bounds of the measurements. */
const bounds: object[] = [];

beforeAll(async () => {
  database = await testDatabase();
  const volumes = {
    measure: (_image: string, measured: readonly UsedMemory[], bound: object) => {
      bounds.push(bound);
      const found = measured.map(({ volume }) => uses.get(volume));
      if (found.includes(undefined)) return Promise.reject(new DockerRefusedError(500, 'broken'));
      const nothing = { bytes: 0, files: 1, contents: 0, complete: true };
      return Promise.resolve(found.map((use) => ({ ...nothing, ...use })));
    },
  };
  // Only the parts that the sizes use.
  const docker = { volumes, disk: { limit: LIMIT } } as unknown as DockerHost;
  sizes = new MemorySizes(database.db, docker, 'image');
});
beforeEach(async () => {
  uses.clear();
  await database.db.asPlatform().query(`UPDATE agents SET host = 'before'`);
});
afterAll(() => database?.close());

async function memory(values: Partial<AgentRow> = {}): Promise<UsedMemory> {
  const agentId = randomUUID();
  const volume = `agent-${agentId}`;
  const kind = { plan: 'network', model: 'gpt-4', aiProvider: 'openai' } as const;
  const names = { userId: USER, name: agentId, subdomain: agentId, host: 'here' };
  await database.db.asUser(USER).transaction(async (db) => {
    const runs = { startedAt: new Date(), desired: 'running' } as const;
    await db.Agent.create({ id: agentId, ...names, ...kind, ...runs, ...values });
    const made = { madeBy: 'test', createdAt: new Date() };
    await db.AgentVolume.create({ name: volume, agentId, userId: USER, ...made });
  });
  return { agentId, userId: USER, image: null, volume, storage: null };
}

async function measured(of: UsedMemory, use: Partial<VolumeUse>): Promise<AgentVolumeRow | null> {
  uses.set(of.volume, use);
  await sizes.measure([of]);
  return database.db.asUser(USER).transaction((db) => db.AgentVolume.findByPk(of.volume));
}

async function reported({ agentId }: UsedMemory): Promise<number> {
  const sql = 'SELECT 1 FROM pending_notifications WHERE agent_id = $agentId';
  return (await database.db.asPlatform().query(sql, { agentId })).length;
}

const requireRoom = ({ agentId }: UsedMemory) =>
  sizes.requireRoom({ agentId, userId: USER, host: 'here' });

test('a filling memory causes one notification, and another one only after it has shrunk', async () => {
  const filling = await memory();
  for (const mib of [85, 72, 85, 79]) await measured(filling, { bytes: mib * MIB });
  expect(await reported(filling)).toBe(1);
  await measured(filling, { bytes: 69 * MIB });
  await measured(filling, { bytes: 79 * MIB });
  expect(await reported(filling)).toBe(1);
  await measured(filling, { bytes: 81 * MIB });
  expect(await reported(filling)).toBe(2);
});

test('a memory that is full when first measured causes no notification besides that of its stop', async () => {
  const full = await memory();
  expect(await measured(full, { bytes: LIMIT })).toMatchObject({ bytes: String(LIMIT) });
  expect(await reported(full)).toBe(0);
});

test('an incomplete measurement never lowers the recorded size', async () => {
  const large = await memory();
  await measured(large, { bytes: 50 * MIB, files: 900 });
  const partly = { bytes: 20 * MIB, files: 1_000, complete: false };
  expect(await measured(large, partly)).toMatchObject({
    bytes: String(50 * MIB),
    files: '1000',
  });
  expect(await measured(large, { bytes: 30 * MIB, files: 10 })).toMatchObject({
    bytes: String(30 * MIB),
    files: '10',
  });
});

test('returns memories that could not be measured completely, except full ones', async () => {
  const [partly, full, refused] = [await memory(), await memory(), await memory()] as const;
  uses.set(partly.volume, { complete: false });
  uses.set(full.volume, { bytes: LIMIT, complete: false });
  expect(await sizes.measure([partly, full])).toEqual([partly]);
  expect(await sizes.measure([refused])).toEqual([refused]);
});

test("an agent's memory is full by its bytes or by its number of files", async () => {
  const [bytes, files, modest, stopped] = [
    await memory(),
    await memory(),
    await memory(),
    await memory({ desired: 'stopped' }),
  ] as const;
  await measured(bytes, { bytes: LIMIT });
  await measured(files, { files: MOST_FILES });
  await measured(modest, { bytes: LIMIT - 1, files: MOST_FILES - 1 });
  await measured(stopped, { bytes: LIMIT });
  const full = await sizes.full('here');
  expect(full.map(({ agent }) => agent.id).sort()).toEqual([bytes.agentId, files.agentId].sort());
  expect(full.find(({ agent }) => agent.id === files.agentId)?.reason).toContain(
    '100000 of the 100000 files',
  );
});

test('an agent with a full memory may start only after the memory has shrunk', async () => {
  const full = await memory();
  await measured(full, { bytes: LIMIT });
  await expect(requireRoom(full)).rejects.toThrow(MemoryFullError);
  uses.set(full.volume, { bytes: LIMIT - 1 });
  await requireRoom(full);
});

test('does not record a volume that now belongs to another agent', async () => {
  const [one, other] = [await memory(), await memory()] as const;
  await measured(other, { bytes: MIB });
  const mixed = { ...one, volume: other.volume };
  expect(await measured(mixed, { bytes: LIMIT })).toMatchObject({ bytes: String(MIB) });
});

describe('a storage plan', () => {
  const GIB = 1024 ** 3;

  const buy = (plan: string, status = 'active') =>
    queryRows(
      database.ownerUrl,
      `INSERT INTO subscriptions (user_id, kind, plan, status, source, processor_id, period_start,
                                  created_at, updated_at)
       VALUES ('${USER}', 'storage', '${plan}', '${status}', 'processor', 'sub_storage', now(),
               now(), now())
       ON CONFLICT (processor_id) DO UPDATE
         SET plan = excluded.plan, status = excluded.status`,
    );

  afterEach(() => queryRows(database.ownerUrl, 'DELETE FROM subscriptions'));

  test("adds its size to the limit of each of its owner's memories, until it ends", async () => {
    const [one, other] = [await memory(), await memory()];
    const ids = async () => (await sizes.full('here')).map(({ agent }) => agent.id).sort();
    for (const each of [one, other]) await measured(each, { bytes: LIMIT + 5 * GIB });
    expect(await ids()).toEqual([one.agentId, other.agentId].sort());
    await buy('10gb');
    expect(await ids()).toEqual([]);
    await requireRoom(one);
    await measured(one, { bytes: LIMIT + 10 * GIB });
    expect(await ids()).toEqual([one.agentId]);
    await buy('50gb');
    expect(await ids()).toEqual([]);
    await buy('50gb', 'cancelled');
    expect(await ids()).toEqual([one.agentId, other.agentId].sort());
    await expect(requireRoom(other)).rejects.toThrow('5220 MiB of the 100 MiB');
  });

  test('is counted in the share of which an owner is notified, and in files', async () => {
    await buy('10gb');
    const [mine] = await owned(await memory());
    if (!mine) throw new Error('the memory is not due');
    expect(mine.storage).toBe('10gb');
    await measured(mine, { bytes: Math.floor(0.79 * (LIMIT + 10 * GIB)), files: MOST_FILES });
    expect(await reported(mine)).toBe(0);
    await measured(mine, { bytes: Math.ceil(0.81 * (LIMIT + 10 * GIB)) });
    expect(await reported(mine)).toBe(1);
    expect(bounds.at(-1)).toMatchObject({ bytes: LIMIT + 10 * GIB });
    expect(await sizes.full('here')).toEqual([]);
  });

  /** Returns the memory as it is due for measurement. */
  const owned = async ({ agentId }: UsedMemory) =>
    (await sizes.due('here', 0, 10)).filter((each) => each.agentId === agentId);
});
