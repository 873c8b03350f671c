import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { TurnEnd } from '../../src/agents/chat/owner-turns.js';
import { SwarmStore, type SwarmTurn } from '../../src/swarms/swarm-store.js';
import {
  getSwarm,
  listSwarms,
  MAX_IN_FLIGHT,
  Swarms,
  type NewSwarm,
} from '../../src/swarms/swarms.js';
import { queryRows } from '../platform/database/catalog.js';
import { insertSql, ROWS } from '../platform/database/rows.js';
import { newUser, testDatabase, type TestDatabase } from '../support/postgres.js';

const DAILY = 500;

let database: TestDatabase;
let store: SwarmStore;
let ada: string;
const swarms = new Swarms();

beforeAll(async () => {
  database = await testDatabase();
  store = new SwarmStore(database.db);
});
afterAll(() => database?.close());
beforeEach(async () => {
  ada = await withAgents(5);
});

async function withAgents(count: number): Promise<string> {
  const user = await newUser(database);
  for (let n = 1; n <= count; n++) {
    const row = { ...ROWS.agents?.(user, n), desired: 'running', status: 'active' };
    await queryRows(database.ownerUrl, insertSql('agents', row));
    await queryRows(
      database.ownerUrl,
      `UPDATE agents SET deleted_at = NULL WHERE id = '${user}-agent-${n}'`,
    );
  }
  return user;
}

const agents = (...numbers: number[]) => numbers.map((n) => `${ada}-agent-${n}`);
const owner = (userId = ada) => ({ userId, isAdmin: false, plan: 'solo' }) as const;
const by = (userId = ada) => ({
  actor: userId,
  idempotencyId: randomUUID(),
  requestId: 'request',
  tenant: database.db.asUser(userId),
});
const create = (wanted: Partial<NewSwarm> = {}, userId = ada) =>
  swarms.create(by(userId), owner(userId), {
    name: 'a swarm',
    task: 'Plan a tour',
    strategy: 'parallel',
    agentIds: agents(1, 2, 3),
    ...wanted,
  });
const change = (id: string, action: 'cancel' | 'retry') => swarms.change(by(), owner(), id, action);
const get = (id: string) => getSwarm(database.db.asUser(ada), id);

const sent = async () => {
  const [row] = await queryRows<{ sent: number }>(
    database.ownerUrl,
    `SELECT sent FROM bus_counts WHERE user_id = '${ada}'`,
  );
  return row?.sent ?? 0;
};

const answered = (answer: string): TurnEnd => ({ kind: 'answered', answer });
const FAILED: TurnEnd = { kind: 'failed', reason: 'The gateway failed' };
const SKIPPED: TurnEnd = { kind: 'skipped', reason: 'The agent is not running' };

/** Runs a turn as its host does. Returns the text of the question. */
async function take(turn: SwarmTurn | undefined, end: TurnEnd): Promise<string | undefined> {
  if (!turn) throw new TypeError('there is no such turn');
  const question = await store.question(turn);
  if (question) await store.finish(turn, end);
  return question?.text;
}

async function begun(id: string) {
  const round = await store.begin(id);
  if (!round) throw new TypeError('the round was not begun');
  return round;
}

describe('a parallel swarm', () => {
  test('hands the answers of its members to the coordinator, and returns unused messages', async () => {
    const { id } = await create({ coordinatorId: agents(2)[0] });
    expect(await sent()).toBe(2);
    const { merge, turns } = await begun(id);
    expect(turns.map(({ agent }) => agent.agentId)).toEqual(agents(1, 2, 3));
    expect(merge?.agent.agentId).toBe(agents(2)[0]);
    expect(await take(turns[0], answered('first answer'))).toBe('Plan a tour');
    expect(await take(turns[1], answered('second answer'))).toBe('Plan a tour');
    await take(turns[2], FAILED);
    const merged = await take(merge, answered('both'));
    for (const part of ['Plan a tour', 'first answer', 'second answer']) {
      expect(merged).toContain(part);
    }
    expect(await store.settle(id)).toBe('completed');
    expect(await sent()).toBe(1);
    expect(await get(id)).toMatchObject({
      status: 'completed',
      result: 'both',
      error: null,
      members: [
        { status: 'done', output: 'first answer', error: null },
        { status: 'done', output: 'second answer' },
        { status: 'failed', output: null, error: 'The gateway failed' },
      ],
    });
  });

  test('fails without an answer, and returns all messages', async () => {
    const { id } = await create();
    const { merge, turns } = await begun(id);
    for (const turn of turns) await take(turn, SKIPPED);
    expect(await store.question(merge as SwarmTurn)).toBeUndefined();
    expect(await store.settle(id)).toBe('failed');
    expect(await get(id)).toMatchObject({ error: 'No member has answered', result: null });
    expect(await sent()).toBe(0);
  });

  test('fails if the coordinator does not merge, and a retry sends the question only to the coordinator', async () => {
    const { id } = await create();
    const first = await begun(id);
    for (const turn of first.turns) await take(turn, answered('an answer'));
    await take(first.merge, FAILED);
    expect(await store.settle(id)).toBe('failed');
    expect((await get(id)).error).toContain('The gateway failed');
    expect(await sent()).toBe(2);
    expect(await change(id, 'retry')).toMatchObject({ status: 'pending', error: null });
    const second = await begun(id);
    expect(second.turns).toEqual([]);
    await take(second.merge, answered('merged'));
    expect(await store.settle(id)).toBe('completed');
    expect(await get(id)).toMatchObject({ result: 'merged' });
    expect(await sent()).toBe(2);
  });

  test('a parallel swarm sends no question to a removed member, and needs its coordinator', async () => {
    const { id } = await create();
    await queryRows(
      database.ownerUrl,
      `UPDATE agents SET desired = 'deleted' WHERE id = '${agents(1)[0]}'`,
    );
    const { merge, turns } = await begun(id);
    expect([turns.length, merge]).toEqual([2, undefined]);
    for (const turn of turns) await take(turn, answered('an answer'));
    expect(await store.settle(id)).toBe('failed');
    expect((await get(id)).members[0]).toMatchObject({
      status: 'failed',
      error: 'The agent was removed',
    });
  });
});

describe('a sequential swarm', () => {
  test('passes 8,000 characters of each answer to the next member', async () => {
    const { id } = await create({ strategy: 'sequential' });
    const { merge, turns } = await begun(id);
    expect(merge).toBeUndefined();
    expect(await take(turns[0], answered('x'.repeat(9_000)))).toBe('Plan a tour');
    const second = await take(turns[1], answered('second'));
    expect(second?.match(/x+$/)?.[0]).toHaveLength(8_000);
    expect(await take(turns[2], answered('third'))).toMatch(/second$/);
    expect(await store.settle(id)).toBe('completed');
    expect(await get(id)).toMatchObject({ result: 'third' });
    expect(await sent()).toBe(2);
  });

  test('a sequential swarm ends with a failed member, and a retry keeps the members that are done', async () => {
    const { id } = await create({ strategy: 'sequential' });
    const first = await begun(id);
    await take(first.turns[0], answered('first'));
    await take(first.turns[1], SKIPPED);
    // A run that begins again sends no question after a failure.
    expect((await begun(id)).turns).toEqual([]);
    expect(await store.settle(id)).toBe('failed');
    expect(await get(id)).toMatchObject({
      error: 'Member 2 failed: The agent is not running',
      members: [{ status: 'done' }, { status: 'failed' }, { status: 'waiting' }],
    });
    expect(await sent()).toBe(0);
    await change(id, 'retry');
    expect(await sent()).toBe(2);
    const second = await begun(id);
    expect(second.turns.map(({ agent }) => agent.agentId)).toEqual(agents(2, 3));
    expect(await take(second.turns[0], answered('second'))).toMatch(/first$/);
    await take(second.turns[1], answered('third'));
    expect(await store.settle(id)).toBe('completed');
  });
});

describe('a cancelled swarm', () => {
  test('a cancelled swarm sends no further question, keeps answers that arrive, and refunds the remaining messages', async () => {
    const { id } = await create();
    const { turns } = await begun(id);
    const [under, next] = turns as [SwarmTurn, SwarmTurn];
    await store.question(under);
    expect(await change(id, 'cancel')).toMatchObject({ status: 'cancelled' });
    expect(await store.question(next)).toBeUndefined();
    await expect(change(id, 'retry')).rejects.toMatchObject({ code: 'SWARM_STATE' });
    await store.finish(under, answered('late'));
    expect(await store.settle(id)).toBe('cancelled');
    expect(await get(id)).toMatchObject({
      status: 'cancelled',
      members: [{ status: 'done', output: 'late' }, { status: 'waiting' }, { status: 'waiting' }],
    });
    expect(await sent()).toBe(0);
    expect(await change(id, 'retry')).toMatchObject({ status: 'pending' });
  });

  test('a turn of an earlier round sends no question and stores nothing', async () => {
    const { id } = await create();
    const { turns } = await begun(id);
    const [first] = turns as [SwarmTurn];
    await change(id, 'cancel');
    await store.settle(id);
    await change(id, 'retry');
    await begun(id);
    expect(await store.question(first)).toBeUndefined();
    await store.finish(first, answered('late'));
    expect((await get(id)).members[0]).toMatchObject({ status: 'waiting', output: null });
  });

  test.each(['completed', 'failed', 'cancelled'])('cannot be cancelled when %s', async (status) => {
    const { id } = await create();
    await queryRows(database.ownerUrl, `UPDATE swarms SET status = '${status}' WHERE id = '${id}'`);
    await expect(change(id, 'cancel')).rejects.toMatchObject({ status: 409, code: 'SWARM_STATE' });
  });

  test.each(['pending', 'running', 'completed'])(
    'a swarm that is %s cannot be retried',
    async (status) => {
      const { id } = await create();
      await queryRows(
        database.ownerUrl,
        `UPDATE swarms SET status = '${status}', settled_at = now() WHERE id = '${id}'`,
      );
      await expect(change(id, 'retry')).rejects.toMatchObject({ status: 409, code: 'SWARM_STATE' });
    },
  );
});

describe('many concurrent requests', () => {
  const settled = async (all: readonly Promise<unknown>[]) => {
    const results = await Promise.allSettled(all);
    return results.filter(({ status }) => status === 'fulfilled').length;
  };

  test('one of fifty requests gets the last of five places', async () => {
    for (let made = 1; made < MAX_IN_FLIGHT; made++) await create();
    expect(await settled(Array.from({ length: 50 }, () => create()))).toBe(1);
    await expect(create()).rejects.toMatchObject({
      status: 429,
      code: 'SWARM_LIMIT_REACHED',
      facts: { current: 5, limit: 5 },
    });
  });

  test('one of fifty retries begins a round', async () => {
    const { id } = await create();
    await change(id, 'cancel');
    await store.settle(id);
    expect(await settled(Array.from({ length: 50 }, () => change(id, 'retry')))).toBe(1);
    const [row] = await queryRows<{ round: number }>(
      database.ownerUrl,
      `SELECT round FROM swarms WHERE id = '${id}'`,
    );
    expect(row?.round).toBe(2);
    expect(await sent()).toBe(2);
  });

  test('either a cancellation or the completion wins', async () => {
    const { id } = await create();
    const { merge, turns } = await begun(id);
    for (const turn of turns) await take(turn, answered('an answer'));
    await take(merge, answered('merged'));
    const [status, ...cancelled] = await Promise.all([
      store.settle(id),
      ...Array.from({ length: 49 }, () =>
        change(id, 'cancel').then(
          () => true,
          () => false,
        ),
      ),
    ]);
    const won = cancelled.filter(Boolean).length;
    expect([status, won]).toEqual(won === 1 ? ['cancelled', 1] : ['completed', 0]);
    expect((await get(id)).status).toBe(status);
  });
});

describe('a new swarm', () => {
  test('a repeated request returns the first swarm', async () => {
    const requester = by();
    const wanted = {
      name: 'a',
      task: 'a',
      strategy: 'parallel',
      agentIds: agents(1, 2),
    } as const;
    const one = await swarms.create(requester, owner(), wanted);
    expect(await swarms.create(requester, owner(), wanted)).toEqual(one);
    expect((await listSwarms(database.db.asUser(ada), ada, { limit: 10 })).items).toEqual([one]);
  });

  test(
    "refuses another user's agents in the same way as missing ones",
    { tags: 'attack' },
    async () => {
      const bob = await withAgents(1);
      for (const stranger of [`${bob}-agent-1`, 'absent']) {
        await expect(create({ agentIds: [...agents(1), stranger] })).rejects.toMatchObject({
          status: 404,
          message: 'Agent not found',
        });
      }
      expect((await listSwarms(database.db.asUser(ada), ada, { limit: 10 })).items).toEqual([]);
      const { id } = await create();
      await expect(getSwarm(database.db.asUser(bob), id)).rejects.toMatchObject({ status: 404 });
      for (const action of ['cancel', 'retry'] as const) {
        await expect(swarms.change(by(bob), owner(bob), id, action)).rejects.toMatchObject({
          status: 404,
          message: 'Swarm not found',
        });
      }
    },
  );

  test('a new swarm needs a plan, a coordinator among its members, and messages of the day', async () => {
    const wanted = {
      name: 'a',
      task: 'a',
      strategy: 'parallel',
      agentIds: agents(1, 2),
    } as const;
    const unpaid = { userId: ada, isAdmin: false, plan: undefined };
    await expect(swarms.create(by(), unpaid, wanted)).rejects.toMatchObject({ status: 402 });
    await expect(create({ coordinatorId: agents(5)[0] })).rejects.toMatchObject({ status: 400 });
    await queryRows(
      database.ownerUrl,
      `INSERT INTO bus_counts (user_id, day, sent)
       VALUES ('${ada}', (now() AT TIME ZONE 'UTC')::date, ${DAILY - 1})`,
    );
    await expect(create()).rejects.toMatchObject({
      status: 429,
      code: 'MESSAGE_LIMIT_REACHED',
      facts: { current: DAILY - 1, limit: DAILY },
    });
    expect(await create({ agentIds: agents(1, 2) })).toMatchObject({ status: 'pending' });
    expect(await sent()).toBe(DAILY);
  });

  test('removes the oldest of 200 swarms', async () => {
    const { id } = await create();
    await queryRows(
      database.ownerUrl,
      `INSERT INTO swarms (id, user_id, name, task, strategy, coordinator_id, status, settled_at, created_at)
       SELECT '${ada} ' || n, '${ada}', 'a', 'a', 'parallel', 'a', 'completed', now(),
              now() - n * interval '1 hour' FROM generate_series(1, 201) n`,
    );
    await create();
    const all = await listSwarms(database.db.asUser(ada), ada, { limit: 300 });
    expect(all.items.some((swarm) => swarm.id === id)).toBe(true);
    expect(all.items.filter((swarm) => swarm.status === 'completed')).toHaveLength(199);
  });
});
