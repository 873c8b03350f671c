import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import {
  ensureSupervisors,
  type SupervisorFound,
} from '../../../src/agents/operations/supervision.js';
import type { OperationKind } from '../../../src/types/operation-kinds.js';
import type { AgentRow } from '../../../src/platform/database/models.js';
import { UnavailableError } from '../../../src/lib/errors.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';

const USER = 'operator';
const CHECK_INTERVAL_MS = 120_000;
const ago = (seconds: number) => new Date(Date.now() - seconds * 1_000);

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
beforeEach(() => database.db.asPlatform().query(`UPDATE agents SET host = 'before'`));
afterAll(() => database?.close());

async function agentOf(values: Partial<AgentRow> = {}): Promise<string> {
  const id = randomUUID();
  const kind = { plan: 'network', model: 'gpt-4', aiProvider: 'openai' } as const;
  const names = { id, userId: USER, name: id, subdomain: id, host: 'here' };
  const seen = { startedAt: ago(3_600), observedAt: ago(60) };
  await database.db
    .asUser(USER)
    .transaction((db) => db.Agent.create({ ...names, ...kind, ...seen, ...values }));
  return id;
}

/**
 * Opens an operation.
 *
 * @returns the id of its agent.
 */
async function openOperation(agentId: string, kind: OperationKind): Promise<string> {
  const operation = { id: randomUUID(), agentId, userId: USER, kind, requestedAt: ago(10) };
  await database.db.asUser(USER).transaction((db) => db.Operation.create(operation));
  return agentId;
}

/** Runs one pass with the given states of supervisors. */
async function pass(
  found: Readonly<Record<string, SupervisorFound | Error>> = {},
  blocked: readonly string[] = [],
) {
  const asked: string[] = [];
  const requestedParts: string[] = [];
  const endStuckChildren = ({ agentId }: { agentId: string }) => {
    requestedParts.push(agentId);
    return Promise.resolve(blocked.includes(agentId));
  };
  const ensure = ({ agentId }: { agentId: string }) => {
    asked.push(agentId);
    const answer = found[agentId] ?? 'moves';
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
  };
  const parts = {
    database: database.db,
    ensure,
    endStuckChildren,
    checkIntervalMs: CHECK_INTERVAL_MS,
  };
  return { asked, requestedParts, found: await ensureSupervisors(parts, 'here') };
}

test('every agent of the host that has run and is not to be removed gets its supervisor', async () => {
  const expected = [await agentOf(), await agentOf({ desired: 'stopped' })];
  await agentOf({ startedAt: null });
  await agentOf({ desired: 'deleted' });
  await agentOf({ host: 'elsewhere' });
  const { asked } = await pass();
  expect(asked.toSorted()).toEqual(expected.toSorted());
});

test('an operation in flight gets a supervisor, also for an agent that never ran or is to be removed', async () => {
  const never = await agentOf({ startedAt: null, desired: 'running' });
  const removed = await agentOf({ desired: 'deleted' });
  const expected = [
    await openOperation(never, 'provision'),
    await openOperation(removed, 'delete'),
  ];
  await openOperation(await agentOf({ deletedAt: ago(10), desired: 'deleted' }), 'delete');
  const { asked, found } = await pass({ [removed]: 'stuck' });
  expect(asked.toSorted()).toEqual(expected.toSorted());
  expect(found.stuck).toEqual([removed]);
});

test('a failing supervisor is reported and does not delay others', async () => {
  const [missing, stuck, failed, well] = await Promise.all([1, 2, 3, 4].map(() => agentOf()));
  const { asked, found } = await pass({
    [missing ?? '']: 'missing',
    [stuck ?? '']: 'stuck',
    [failed ?? '']: new Error('unexpected failure'),
  });
  expect(asked).toContain(well);
  const none = { blocked: [], unseen: [] };
  expect(found).toEqual({ missing: [missing], stuck: [stuck], failed: [failed], ...none });
});

const memory = { version: 1, since: 0, crashes: [], repairAttempts: 0, lastRepair: null };

test('stuck parts of supervisors are searched only where they may block work', async () => {
  const unseen = await agentOf({ observedAt: ago((3 * CHECK_INTERVAL_MS) / 1_000 + 1) });
  const busy = await openOperation(await agentOf({ desired: 'stopped' }), 'start');
  const repairing = await agentOf({ watchdog: { ...memory, state: 'repairing' } });
  await agentOf();
  await agentOf({ watchdog: { ...memory, state: 'degraded' } });
  const { requestedParts, found } = await pass({}, [repairing]);
  expect(requestedParts.toSorted()).toEqual([unseen, busy, repairing].toSorted());
  expect(found.blocked).toEqual([repairing]);
});

test('one pass searches a limited number of agents for stuck parts', async () => {
  await database.db.asPlatform().query(
    `INSERT INTO agents (id, user_id, name, subdomain, host, plan, model, ai_provider, started_at,
                         created_at, updated_at)
     SELECT 'many-' || n, '${USER}', 'many-' || n, 'many-' || n, 'here', 'network', 'gpt-4', 'openai',
            now(), now(), now()
       FROM generate_series(1, 250) n`,
  );
  const { asked, requestedParts } = await pass();
  expect(asked).toHaveLength(250);
  expect(new Set(requestedParts).size).toBe(200);
});

test('a pass without Temporal fails, so that it is retried', async () => {
  const id = await agentOf();
  await expect(pass({ [id]: new UnavailableError('away') })).rejects.toThrow(UnavailableError);
});

test('agents that should run and were not observed for three check intervals are reported', async () => {
  const long = { observedAt: ago((3 * CHECK_INTERVAL_MS) / 1_000 + 1) };
  const unseen = [await agentOf(long), await agentOf({ observedAt: null })];
  await agentOf({ observedAt: ago((3 * CHECK_INTERVAL_MS) / 1_000 - 10) });
  await agentOf({ ...long, desired: 'stopped' });
  await agentOf({ ...long, watchdog: { ...memory, state: 'crash_loop' } });
  await openOperation(await agentOf(long), 'update');
  expect((await pass()).found.unseen.toSorted()).toEqual(unseen.toSorted());
});
