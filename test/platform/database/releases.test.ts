import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { OperationStore } from '../../../src/agents/operations/operation-store.js';
import { sealInput, type RequestedInput } from '../../../src/agents/operations/operation-input.js';
import type { AgentRef } from '../../../src/types/agent-ref.js';
import { AgentGoneError } from '../../../src/agents/agents/agents.js';
import type { OperationKind } from '../../../src/types/operation-kinds.js';
import { MAX_ARCHIVES, ReleaseStore } from '../../../src/agents/operations/release-store.js';
import { AgentVolumeStore } from '../../../src/agents/memory/agent-volume-store.js';
import type { AgentRow } from '../../../src/platform/database/models.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';
import { testSecrets } from '../../support/secrets.js';
import { queryRows } from './catalog.js';
import { insertSql, ROWS } from './rows.js';

const secrets = testSecrets();

let database: TestDatabase;
let releases: ReleaseStore;
let operations: OperationStore;
let volumes: AgentVolumeStore;

beforeAll(async () => {
  database = await testDatabase();
  await queryRows(database.ownerUrl, insertSql('users', ROWS.users?.('alice', 1) ?? {}));
  releases = new ReleaseStore(database.db);
  operations = new OperationStore(database.db, secrets);
  volumes = new AgentVolumeStore(database.db);
});
afterAll(() => database?.close());

const BEFORE = {
  image: 'repository:1',
  volume: null,
  plan: 'solo',
  model: 'provider/model',
  aiProvider: 'provider',
  config: { note: 'before' },
} as const;

async function newAgent(): Promise<AgentRef> {
  const agentId = randomUUID();
  const agent = { agentId, userId: 'alice', host: 'local' };
  const place = { name: agentId, subdomain: agentId, startedAt: new Date() };
  await database.db
    .asUser('alice')
    .transaction((db) => db.Agent.create({ id: agentId, userId: 'alice', ...BEFORE, ...place }));
  return agent;
}

async function begin(
  agent: AgentRef,
  kind: OperationKind,
  input: RequestedInput = {},
): Promise<string> {
  const id = randomUUID();
  const { agentId, userId } = agent;
  await database.db.asUser('alice').transaction((db) =>
    db.Operation.create({
      id,
      agentId,
      userId,
      kind,
      input: sealInput(secrets, { agentId, operationId: id }, input),
      error: null,
      runId: null,
      requestedAt: new Date(),
      finishedAt: null,
    }),
  );
  expect(await operations.begin(agent, { id, kind, runId: 'run' })).toBe('begun');
  return id;
}

const rowOf = ({ agentId }: AgentRef): Promise<AgentRow> =>
  database.db.asUser('alice').transaction((db) => db.Agent.getByPk(agentId));

/** Returns the agent's kept and obsolete volumes, newest first. */
async function volumesOf(agent: AgentRef) {
  const rows = await volumes.of(agent);
  rows.sort((a, b) => b.createdAt.getTime() - a.createdAt.getTime());
  const named = (obsolete: boolean) =>
    rows.filter((row) => row.obsolete === obsolete).map(({ name }) => name);
  return { kept: named(false), obsolete: named(true) };
}

/** Records a volume as the activity that creates it does. */
const make = (agent: AgentRef, operationId?: string) =>
  volumes.name(agent, { name: volumeOf(agent, operationId), madeBy: operationId ?? 'first' });

const twice = async (work: () => Promise<unknown>) => {
  await work();
  await work();
};

const volumeOf = ({ agentId }: AgentRef, operationId?: string) =>
  ['agent', agentId, ...(operationId === undefined ? [] : [operationId.slice(0, 8)])].join('-');

describe('a release', () => {
  test('a release of an update is recorded, kept and cleared, each once', async () => {
    const agent = await newAgent();
    const id = await begin(agent, 'update', { image: 'repository:2' });
    expect(await rowOf(agent)).toMatchObject({ ...BEFORE, previousRelease: null });
    expect(await releases.replacementOf(agent, id)).toEqual({
      image: 'repository:2',
      volume: volumeOf(agent, id),
      copyOf: volumeOf(agent),
    });

    await make(agent);
    await make(agent, id);
    await twice(() => releases.beginRelease(agent, id));
    const begun = await rowOf(agent);
    expect(begun).toMatchObject({ image: 'repository:2', volume: volumeOf(agent, id) });
    expect(begun.previousRelease).toMatchObject({ ...BEFORE, operationId: id });
    const both = [volumeOf(agent, id), volumeOf(agent)];
    expect(await volumesOf(agent)).toEqual({ kept: both, obsolete: [] });

    await twice(() => releases.keepRelease(agent, id));
    await releases.rollBackRelease(agent, id);
    expect(await rowOf(agent)).toMatchObject({
      ...BEFORE,
      image: 'repository:2',
      volume: volumeOf(agent, id),
      previousRelease: null,
      failedImage: null,
    });
    const [kept = '', obsolete = ''] = both;
    expect(await volumesOf(agent)).toEqual({ kept: [kept], obsolete: [obsolete] });
  });

  test('a release that is rolled back is recorded as failed until it succeeds', async () => {
    const agent = await newAgent();
    const failing = await begin(agent, 'update', { image: 'repository:2' });
    await make(agent);
    await make(agent, failing);
    await releases.beginRelease(agent, failing);
    await twice(() => releases.rollBackRelease(agent, failing));
    await releases.keepRelease(agent, failing);
    expect(await rowOf(agent)).toMatchObject({
      ...BEFORE,
      previousRelease: null,
      failedImage: 'repository:2',
    });
    expect(await volumesOf(agent)).toEqual({
      kept: [volumeOf(agent)],
      obsolete: [volumeOf(agent, failing)],
    });

    const again = await begin(agent, 'update', { image: 'repository:2' });
    await releases.beginRelease(agent, again);
    await releases.keepRelease(agent, again);
    expect(await rowOf(agent)).toMatchObject({ image: 'repository:2', failedImage: null });
  });

  test('a release that never began is not rolled back', async () => {
    const agent = await newAgent();
    const id = await begin(agent, 'update', { image: 'repository:2' });
    await make(agent);
    await make(agent, id);
    await releases.rollBackRelease(agent, id);
    expect(await rowOf(agent)).toMatchObject({ ...BEFORE, failedImage: null });
    // The volume that the release had created is obsolete.
    expect(await volumesOf(agent)).toEqual({
      kept: [volumeOf(agent)],
      obsolete: [volumeOf(agent, id)],
    });
  });

  test('a release of a configuration rolls back all that it changed', async () => {
    const agent = await newAgent();
    const changed = { plan: 'network', aiProvider: 'other', config: { note: 'after' } } as const;
    const id = await begin(agent, 'configure', { ...changed, image: 'not of a configuration' });
    expect(await rowOf(agent)).toMatchObject({ ...BEFORE, ...changed });
    await twice(() => releases.beginRelease(agent, id));
    expect(await rowOf(agent)).toMatchObject({ ...BEFORE, ...changed });
    await make(agent);
    await twice(() => releases.rollBackRelease(agent, id));
    expect(await rowOf(agent)).toMatchObject({ ...BEFORE, previousRelease: null });
    expect(await volumesOf(agent)).toEqual({ kept: [volumeOf(agent)], obsolete: [] });
    expect((await rowOf(agent)).failedImage).toBeNull();
  });

  test('a release of a configuration that needs no proof is kept when its operation ends', async () => {
    const agent = await newAgent();
    const id = await begin(agent, 'configure', { config: { note: 'after' } });
    await operations.finish(agent, {
      id,
      kind: 'configure',
      status: 'succeeded',
      error: null,
    });
    expect(await rowOf(agent)).toMatchObject({
      config: { note: 'after' },
      previousRelease: null,
    });
  });

  test('a release of a stopped agent changes only its image', async () => {
    const agent = await newAgent();
    const id = await begin(agent, 'update', { image: 'repository:2' });
    await twice(() => releases.recordUpdate(agent, id));
    expect(await rowOf(agent)).toMatchObject({ ...BEFORE, image: 'repository:2' });
  });
});

describe('an archive', () => {
  test('a reset keeps the previous volume as an archive and drops the oldest archive', async () => {
    const agent = await newAgent();
    const resets: string[] = [];
    await make(agent);
    for (let time = 0; time <= MAX_ARCHIVES; time++) {
      const id = await begin(agent, 'reset-memory');
      expect(await releases.replacementOf(agent, id)).toHaveProperty('copyOf', undefined);
      await make(agent, id);
      await releases.beginRelease(agent, id);
      await twice(() => releases.keepRelease(agent, id));
      resets.push(id);
    }
    const [first = '', ...others] = resets;
    const kept = resets.map((id) => volumeOf(agent, id)).reverse();
    expect(await volumesOf(agent)).toEqual({ kept, obsolete: [volumeOf(agent)] });

    const archiveId = others.at(-1) ?? '';
    const id = await begin(agent, 'restore', { archiveId });
    expect(await releases.replacementOf(agent, id)).toMatchObject({
      copyOf: volumeOf(agent, resets.at(-2)),
    });
    const gone = await begin(agent, 'restore', { archiveId: first });
    await expect(releases.replacementOf(agent, gone)).rejects.toBeInstanceOf(AgentGoneError);
  });

  test('a memory that was missing is not archived', async () => {
    const agent = await newAgent();
    await make(agent);
    const id = await begin(agent, 'restore', { archiveId: 'any' });
    await make(agent, id);
    await releases.beginRelease(agent, id);
    await twice(() => releases.keepRelease(agent, id, false));
    const archives = `SELECT id FROM agent_archives WHERE agent_id = '${agent.agentId}'`;
    expect(await queryRows(database.ownerUrl, archives)).toEqual([]);
    // The memory may be found again, so it is not removed.
    const kept = [volumeOf(agent, id), volumeOf(agent)];
    expect(await volumesOf(agent)).toEqual({ kept, obsolete: [] });
  });

  test('an archive is removed with its agent', async () => {
    const agent = await newAgent();
    const id = await begin(agent, 'reset-memory');
    await releases.beginRelease(agent, id);
    await releases.keepRelease(agent, id);
    const deletion = await begin(agent, 'delete');
    await operations.finish(agent, {
      id: deletion,
      kind: 'delete',
      status: 'succeeded',
      error: null,
    });
    await expect(make(agent, id)).rejects.toBeInstanceOf(AgentGoneError);
    const left = await queryRows(
      database.ownerUrl,
      `SELECT id FROM agent_archives WHERE agent_id = '${agent.agentId}'`,
    );
    expect(left).toEqual([]);
    await releases.beginRelease(agent, id);
    expect((await rowOf(agent)).previousRelease).toBeNull();
  });
});
