import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { routeMessage } from '../../src/bus/route-message.js';
import { MAX_NODES } from '../../src/fleet/fleet-graph.js';
import { shownAddress } from '../../src/money/chain/address.js';
import { settle } from '../ai/usage/support.js';
import { busSite, type BusAgent, type BusSite } from '../bus/support.js';

const FLEET = '/api/mission-control/fleet';

let site: BusSite;
let ada: BusAgent;
let helper: BusAgent;
let bob: BusAgent;

beforeAll(async () => {
  site = await busSite();
});
afterAll(() => site?.close());
beforeEach(async () => {
  [ada, bob] = [await site.agent(), await site.agent()];
  helper = await site.agent({ owner: ada.owner });
});

const get = async (path: string, { owner }: Pick<BusAgent, 'owner'> = ada) => {
  const { body, headers, status } = await site.web(owner, 'GET', path);
  return { status, body, next: /<([^>]+)>/.exec(headers.get('link') ?? '')?.[1] };
};
const read = async (path: string, of?: Pick<BusAgent, 'owner'>) => {
  const { body, status } = await get(path, of);
  expect([status, body]).toEqual([200, body]);
  return body;
};

type Value = string | number | boolean | null;
type Values = Readonly<Record<string, Value>>;

/** Inserts rows of a table as the owner of the database. */
const insert = (table: string, ...rows: readonly Values[]) =>
  site.rows(
    `INSERT INTO ${table} (${Object.keys(rows[0] ?? {}).join(', ')})
     VALUES ${rows.map((row) => `(${Object.values(row).map(valueOf).join(', ')})`).join(', ')}`,
  );
const valueOf = (value: Value) =>
  typeof value === 'string' ? `'${value.replaceAll("'", "''")}'` : String(value);
const ago = (seconds: number) => new Date(Date.now() - seconds * 1_000).toISOString();

const ownedBy = ({ id, owner }: BusAgent) => ({ agent_id: id, user_id: owner.id });

async function operation(of: BusAgent, more: Values = {}) {
  const id = randomUUID();
  await insert('operations', { id, ...ownedBy(of), kind: 'start', requested_at: ago(60), ...more });
  return id;
}

async function taskRun(of: BusAgent, more: Values = {}) {
  const [id, task] = [randomUUID(), randomUUID()];
  const times = { created_at: ago(99), updated_at: ago(99), set_at: ago(99) };
  await insert('scheduled_tasks', {
    ...{ id: task, ...ownedBy(of), name: 'Morning news', message: 'm', schedule: '0 9 * * *' },
    ...{ timezone: 'UTC', enabled: true, last_run: ago(50), ...times },
  });
  await insert('scheduled_task_runs', {
    ...{ id, task_id: task, ...ownedBy(of), scheduled_for: ago(50), started_at: ago(50) },
    ...{ status: 'running', ...more },
  });
  return id;
}

async function swarm(members: readonly BusAgent[], more: Values = {}) {
  const id = randomUUID();
  const [{ id: first, owner }] = members as [BusAgent];
  await insert('swarms', {
    ...{ id, user_id: owner.id, name: 'Tour', task: 'Plan', strategy: 'parallel' },
    ...{ coordinator_id: first, created_at: ago(40), ...more },
  });
  await insert(
    'swarm_members',
    ...members.map((each, position) => ({ swarm_id: id, position, ...ownedBy(each) })),
  );
  return id;
}

async function clone(of: BusAgent, more: Values = {}) {
  const agent = await site.agent({ owner: of.owner });
  await site.rows(
    `UPDATE agents SET parent_agent_id = '${of.id}', generation = (
       SELECT generation + 1 FROM agents WHERE id = '${of.id}') WHERE id = '${agent.id}'`,
  );
  await insert('clones', {
    ...{ id: agent.id, user_id: of.owner.id, parent_agent_id: of.id, chain_id: 1, amount: 1 },
    ...{ specialization: 'booking', hash: randomUUID(), payer: '0x', block: 1, requested_by: 'a' },
    ...{ request_id: 'r', ...more },
  });
  return agent;
}

async function split(of: BusAgent, to: string, more: Values = {}) {
  const [made] = await site.rows<{ id: string }>(
    `INSERT INTO royalty_splits (user_id, agent_id, request_key, from_address, chain_id, token_address,
                                 name, total_amount, status)
     VALUES ('${of.owner.id}', '${of.id}', '${randomUUID()}', '0x', 1, '0x', 'split', 10, 'completed')
     RETURNING id`,
  );
  const id = made?.id ?? '';
  for (const [name, value] of Object.entries(more)) {
    await site.rows(`UPDATE royalty_splits SET ${name} = ${valueOf(value)} WHERE id = ${id}`);
  }
  const address = to.toLowerCase();
  await insert('royalty_payouts', {
    ...{ split_id: id, position: 0, user_id: of.owner.id, address, share: 1, amount: 10 },
    ...{ status: 'confirmed', payment: 'p' },
  });
}

async function say(from: BusAgent, to: BusAgent, action: string, payload: object = {}) {
  const { answer, message } = await site.send(from, to, { action, payload: { ...payload } });
  expect(answer.status).toBe(200);
  const [row] = await site.rows<{ id: string }>(
    `SELECT id FROM bus_messages WHERE message_id = '${message.messageId}'`,
  );
  await routeMessage(site.database.db, site.dependencies.secrets, row?.id ?? '');
}

describe('the graph', () => {
  test('the graph has agents, swarms and receivers, and their relations', async () => {
    const child = await clone(ada);
    const id = await swarm([ada, helper]);
    const stranger = '0x20c0000000000000000000000000000000000000';
    await split(ada, stranger);
    await split(ada, stranger);
    await split(helper, ada.wallet.address);
    for (const [from, to] of [
      [ada, helper],
      [ada, helper],
      [ada, bob],
      [bob, helper],
    ] as const) {
      await say(from, to, 'AMPLIFY_POST');
    }
    // An old one is not counted.
    await say(helper, ada, 'AMPLIFY_POST');
    await site.rows(
      `UPDATE bus_messages SET created_at = now() - interval '31 days' WHERE from_agent = '${helper.id}'`,
    );
    const { edges, generatedAt, nodes, truncated } = await read(`${FLEET}/graph`);
    expect([truncated, Date.parse(generatedAt) > Date.now() - 60_000]).toEqual([false, true]);
    const shown = shownAddress(stranger);
    expect(nodes).toEqual([
      ...[ada, helper, child].map((agent) => ({
        ...{ id: agent.id, type: 'agent', label: agent.id, status: 'provisioning' },
      })),
      { id, type: 'swarm', label: 'Tour', status: 'pending' },
      { id: bob.id, type: 'agent', label: bob.id, status: 'external' },
      { id: shown, type: 'wallet', label: shown, status: 'external' },
      ...[ada.wallet.address].map((own) => ({
        id: own,
        type: 'wallet',
        label: own,
        status: 'own',
      })),
    ]);
    const edge = (type: string, from: string, to: string, count = 1) => ({ from, to, type, count });
    expect(new Set(edges)).toEqual(
      new Set([
        edge('clone', ada.id, child.id),
        edge('member', id, ada.id),
        edge('member', id, helper.id),
        edge('split', ada.id, shown, 2),
        edge('split', helper.id, ada.wallet.address),
        edge('message', ada.id, helper.id, 2),
        edge('message', ada.id, bob.id),
        edge('message', bob.id, helper.id),
      ]),
    );
  });

  test('the graph has no removed agent, and cuts at 500 nodes', async () => {
    await say(ada, helper, 'AMPLIFY_POST');
    await site.rows(`UPDATE agents SET desired = 'deleted' WHERE id = '${helper.id}'`);
    const small = await read(`${FLEET}/graph`);
    expect([small.nodes.length, small.edges]).toEqual([1, []]);
    await site.rows(
      `INSERT INTO agents (id, user_id, name, subdomain, plan, model, ai_provider, created_at, updated_at)
       SELECT '${ada.id}' || n, '${ada.owner.id}', n::text, '${ada.id}' || n, 'solo', 'm', 'p', now(), now()
         FROM generate_series(1, ${MAX_NODES}) n`,
    );
    const large = await read(`${FLEET}/graph`);
    expect([large.nodes.length, large.truncated]).toEqual([MAX_NODES, true]);
  });
});

describe('traces', () => {
  test('traces have every kind, newest first, with the outcome of their rows', async () => {
    const error = 'The image is missing';
    const ids = {
      requested: await operation(ada, { requested_at: ago(70) }),
      failed: await operation(helper, { status: 'failed', error, finished_at: ago(58.5) }),
      skipped: await taskRun(ada, { status: 'skipped', error: 'busy', finished_at: ago(50) }),
      completed: await swarm([ada, helper], { status: 'completed', finished_at: ago(10) }),
    };
    await operation(bob);
    const { count, traces } = await read(`${FLEET}/traces`);
    expect([count, traces.map(({ id }: { id: string }) => id)]).toEqual([
      4,
      [ids.completed, ids.skipped, ids.failed, ids.requested],
    ]);
    expect(traces).toMatchObject([
      { kind: 'swarm', name: 'Tour', agentId: ada.id, status: 'succeeded', error: null },
      { kind: 'task', name: 'Morning news', agentId: ada.id, status: 'cancelled', error: 'busy' },
      { kind: 'operation', name: 'start', agentId: helper.id, status: 'failed', error },
      { kind: 'operation', status: 'running', finishedAt: null, durationMs: null },
    ]);
    expect(traces[0].durationMs).toBeGreaterThan(29_000);
    expect(traces[0].durationMs).toBeLessThan(31_000);
  });

  test('traces include videos and e-mails', async () => {
    const [video, mail] = [randomUUID(), randomUUID()];
    await insert('videos', {
      ...{ id: video, ...ownedBy(ada), prompt: 'A city', status: 'failed', error: 'Refused' },
      ...{ created_at: ago(66), completed_at: ago(5), settled_at: ago(5) },
    });
    await insert('agent_emails', {
      ...{ id: mail, ...ownedBy(ada), provider_id: randomUUID(), sender: 'eve@example.org' },
      ...{ status: 'answered', received_at: ago(80), settled_at: ago(70) },
    });
    const { traces } = await read(`${FLEET}/traces`);
    expect(traces).toMatchObject([
      { id: video, kind: 'video', name: 'A city', status: 'failed', error: 'Refused' },
      { id: mail, kind: 'email', name: 'eve@example.org', status: 'succeeded', error: null },
    ]);
    expect(Math.round(traces[0].durationMs / 10_000)).toBe(6);
  });

  test('traces are returned in pages that lose none of the same millisecond', async () => {
    const at = (n: number) => `2026-11-01T00:00:00.00000${n % 4}Z`;
    const made = [];
    for (let n = 0; n < 9; n += 1) made.push(await operation(ada, { requested_at: at(n) }));
    const seen: string[] = [];
    let path: string | undefined = `${FLEET}/traces?limit=2`;
    for (let pages = 0; path !== undefined && pages < 9; pages += 1) {
      const { body, next } = await get(path);
      seen.push(...body.traces.map(({ id }: { id: string }) => id));
      path = next;
    }
    expect([seen.length, new Set(seen)]).toEqual([9, new Set(made)]);
  });

  test('traces answer 404 for an id of another tenant', { tags: 'attack' }, async () => {
    const id = await operation(ada);
    expect((await get(`${FLEET}/traces?id=${id}`, bob)).status).toBe(404);
    const steps = (of: BusAgent) => site.backend(of.owner, 'GET', `/api/traces/${id}`);
    expect([(await steps(bob)).status, (await steps(ada)).status]).toEqual([404, 200]);
  });
});

describe('costs', () => {
  const call = (of: BusAgent, agentId: string | null, costUsd: string, daysAgo: number) => ({
    ...{ userId: of.owner.id, agentId, costUsd, provider: 'openai', model: 'small' },
    ...{ inputTokens: 10, outputTokens: 5, at: ago(daysAgo * 86_400) },
  });

  test('equal the sums of the usage pages, for each period', async () => {
    await settle(site.database.db, [
      ...[call(ada, ada.id, '0.300001', 0), call(ada, ada.id, '0.1', 3)],
      ...[call(ada, helper.id, '0.6', 1), call(ada, null, '0.05', 2), call(ada, ada.id, '7', 20)],
      call(bob, bob.id, '99', 0),
    ]);
    for (const period of ['7d', '30d', 'mtd']) {
      const costs = await read(`${FLEET}/costs?period=${period}`);
      const page = await read(`/api/dashboard/cost?period=${period}`);
      expect([costs.period, costs.totalCost]).toEqual([period, page.summary.totalCost]);
      const named = (agents: readonly Record<string, unknown>[]) =>
        agents.map(({ calls, cost, name, tokens }) => ({ calls, cost, name, tokens }));
      expect(named(costs.agents)).toEqual(named(page.agents));
      expect(costs.daily).toEqual(
        page.daily.map(({ cost, date }: Record<string, unknown>) => ({ date, cost })),
      );
      expect([costs.from, costs.to]).toEqual([costs.daily.at(0).date, costs.daily.at(-1).date]);
      const shares = costs.agents.map(({ share }: { share: number }) => share);
      expect(shares.reduce((sum: number, share: number) => sum + share, 0)).toBeCloseTo(1, 9);
    }
    const { agents, totalCost } = await read(`${FLEET}/costs`);
    expect(totalCost).toBe(1.050001);
    expect(agents.map(({ agentId }: { agentId: string }) => agentId)).toEqual([
      ...[helper.id, ada.id, null],
    ]);
  });

  test('costs are zero without a call, and never samples', async () => {
    const { agents, daily, projectedMonthCost, totalCost } = await read(`${FLEET}/costs`);
    expect([agents, totalCost, projectedMonthCost, daily.length]).toEqual([[], 0, 0, 7]);
  });

  test('costs project the month from its cost and the last seven days', async () => {
    await settle(site.database.db, [call(ada, ada.id, '7', 0)]);
    const now = new Date();
    const days = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 0)).getUTCDate();
    const { projectedMonthCost } = await read(`${FLEET}/costs`);
    expect(projectedMonthCost).toBe(7 + (days - now.getUTCDate()));
  });
});

describe('bookings', () => {
  const bookingId = 'gig-7';
  const booking = async (of: BusAgent = ada) => (await read(`${FLEET}/bookings`, of)).bookings[0];

  test('bookings follow a negotiation to its settlement, for its two parties only', async () => {
    await say(ada, bob, 'BOOKING_REQUEST', { bookingId, amount: '150.00', eventId: 'e1' });
    const { createdAt, updatedAt, ...first } = await booking();
    expect(first).toEqual({
      ...{ id: bookingId, agentId: ada.id, counterparty: bob.id, status: 'requested' },
      ...{ amount: '150.00', currency: null, eventId: 'e1' },
    });
    expect(Date.parse(createdAt)).toBeLessThanOrEqual(Date.parse(updatedAt));
    await say(bob, ada, 'BOOKING_COUNTER', { bookingId, amount: 180.5, currency: 'USDC' });
    expect(await booking()).toMatchObject({
      ...{ status: 'countered', amount: '180.5', currency: 'USDC', eventId: 'e1' },
    });
    expect(await booking(bob)).toMatchObject({ agentId: bob.id, counterparty: ada.id });
    await say(ada, bob, 'BOOKING_ACCEPT', { bookingId });
    expect(await booking()).toMatchObject({ status: 'accepted' });
    // Settlements of others for a booking of the same name are none of this one.
    const eve = await site.agent();
    await split(eve, bob.wallet.address, { booking_id: bookingId });
    await split(ada, bob.wallet.address, { booking_id: bookingId, status: 'processing' });
    expect([(await booking()).status, (await booking(bob)).status]).toEqual([
      ...['accepted', 'accepted'],
    ]);
    await site.rows(
      `UPDATE royalty_splits SET status = 'completed' WHERE user_id = '${ada.owner.id}'`,
    );
    expect([(await booking()).status, (await booking(bob)).status]).toEqual(['settled', 'settled']);
    expect(await read(`${FLEET}/bookings`, eve)).toEqual({ bookings: [], count: 0 });
    const asEve = site.database.db.asUser(eve.owner.id);
    const [a, b] = [ada.id, bob.id].sort();
    expect(
      await asEve.query('SELECT booking_is_settled($a, $b, $bookingId) AS is', { a, b, bookingId }),
    ).toEqual([{ is: false }]);
  });

  test('bookings end as declined or cancelled, and are returned in pages', async () => {
    await say(ada, bob, 'BOOKING_REQUEST', { bookingId: 'b1' });
    await say(bob, ada, 'BOOKING_DECLINE', { bookingId: 'b1' });
    await say(ada, bob, 'BOOKING_REQUEST', { bookingId: 'b2' });
    await say(ada, bob, 'BOOKING_CANCEL', { bookingId: 'b2' });
    await say(ada, helper, 'BOOKING_REQUEST', { bookingId: 'b3' });
    const seen: [string, string][] = [];
    let path: string | undefined = `${FLEET}/bookings?limit=1`;
    for (let pages = 0; path !== undefined && pages < 5; pages += 1) {
      const { body, next } = await get(path);
      for (const { id, status } of body.bookings) seen.push([id, status]);
      path = next;
    }
    expect(seen).toEqual([
      ['b3', 'requested'],
      ['b2', 'cancelled'],
      ['b1', 'declined'],
    ]);
  });
});

describe('the colony', () => {
  const colony = (query = '', of?: BusAgent) => read(`/api/colony/status${query}`, of);
  const remove = ({ id }: BusAgent) =>
    site.rows(`UPDATE agents SET desired = 'deleted', deleted_at = now() WHERE id = '${id}'`);

  test('the colony is a tree of descent, with the removed ancestors of existing agents', async () => {
    const child = await clone(ada);
    const grandchild = await clone(child, { specialization: 'ar' });
    const gone = await clone(helper);
    await remove(child);
    await remove(gone);
    const { roots, timestamp, view, ...sums } = await colony();
    expect(view).toBe('tree');
    expect(Number.isNaN(Date.parse(timestamp))).toBe(false);
    expect(sums).toEqual({ size: 3, generations: 3, truncated: false });
    const node = (id: string, generation: number, more: object) => ({
      ...{ id, name: id, generation, specialization: 'general', status: 'provisioning' },
      ...{ createdAt: expect.any(String), children: [], ...more },
    });
    expect(roots).toEqual([
      node(ada.id, 1, {
        children: [
          node(child.id, 2, {
            ...{ status: 'deleted', specialization: 'booking' },
            children: [node(grandchild.id, 3, { specialization: 'ar' })],
          }),
        ],
      }),
      node(helper.id, 1, {}),
    ]);
  });

  test('cuts its tree at 50 generations', async () => {
    await site.rows(
      `INSERT INTO agents (id, user_id, name, subdomain, plan, model, ai_provider, generation,
                           parent_agent_id, created_at, updated_at)
       SELECT '${ada.id}' || n, '${ada.owner.id}', n::text, '${ada.id}' || n, 'solo', 'm', 'p', n,
              CASE n WHEN 2 THEN '${ada.id}' ELSE '${ada.id}' || (n - 1) END, now(), now()
         FROM generate_series(2, 52) n`,
    );
    const { generations, size, truncated } = await colony();
    expect({ generations, size, truncated }).toEqual({
      generations: 50,
      size: 51,
      truncated: true,
    });
  });

  test('checks the stored state of all agents', async () => {
    const child = await clone(ada);
    const orphan = await clone(helper);
    await remove(helper);
    const change = (of: BusAgent, set: string) =>
      site.rows(`UPDATE agents SET ${set} WHERE id = '${of.id}'`);
    await change(
      ada,
      `verified = true, status = 'active', observed_at = now() - interval '6 minutes'`,
    );
    await change(child, `generation = 7, status = 'error'`);
    await change(orphan, `watchdog = '{"state": "crash_loop"}', observed_at = now()`);
    const found = await colony('?view=diagnostics');
    const named = (name: string, ...agents: BusAgent[]) => {
      const { length: count } = agents;
      return { name, ok: count === 0, count, agents: agents.map(({ id }) => id) };
    };
    expect(found).toEqual({
      view: 'diagnostics',
      healthy: false,
      checks: [
        named('orphans', orphan),
        named('failed', child),
        named('crash_loop', orphan),
        named('unverified', child, orphan),
        named('stale', ada),
        named('lineage', child),
      ],
    });
    await change(bob, `verified = true, observed_at = now()`);
    expect(await colony('?view=diagnostics', bob)).toMatchObject({ healthy: true });
    // A stopped agent is not observed.
    await change(bob, `desired = 'stopped', observed_at = now() - interval '1 day'`);
    expect(await colony('?view=diagnostics', bob)).toMatchObject({ healthy: true });
  });

  test('the colony returns a soul only for agents of the caller', async () => {
    const soul = (query: string) => get(`/api/colony/status?view=soul${query}`);
    expect([(await soul('')).status, (await soul(`&agentId=${bob.id}`)).status]).toEqual([
      400, 404,
    ]);
    expect((await get('/api/colony/status?view=other')).status).toBe(400);
  });
});

test("shows no row of another tenant's", { tags: 'attack' }, async () => {
  await operation(ada);
  await taskRun(ada);
  await swarm([ada, helper]);
  await clone(ada);
  await split(ada, helper.wallet.address, { booking_id: 'b' });
  await say(ada, helper, 'BOOKING_REQUEST', { bookingId: 'b' });
  await settle(site.database.db, [
    {
      userId: ada.owner.id,
      agentId: ada.id,
      provider: 'openai',
      model: 'small',
      inputTokens: 1,
      outputTokens: 1,
      costUsd: '1',
      at: ago(0),
    },
  ]);
  const views = ['graph', 'traces', 'costs', 'bookings'].map((view) => `${FLEET}/${view}`);
  const colony = ['tree', 'diagnostics'].map((view) => `/api/colony/status?view=${view}`);
  for (const path of [...views, ...colony]) {
    const text = JSON.stringify(await read(path, bob));
    for (const secret of [ada.id, helper.id, ada.owner.id, 'Tour', 'Morning news']) {
      expect([path, text.includes(secret)]).toEqual([path, false]);
    }
    expect(await read(path)).not.toEqual(await read(path, bob));
  }
});

test('finds the newest rows only by their indexes', async () => {
  const tables = [
    ['operations', 'requested_at', 'operations_user_requested'],
    ['scheduled_task_runs', 'started_at', 'scheduled_task_runs_user_started'],
    ['swarms', 'created_at', 'swarms_user_created'],
    ['videos', 'created_at', 'videos_user_created'],
    ['agent_emails', 'received_at', 'agent_emails_user_received'],
  ] as const;
  for (const [table, at, index] of tables) {
    const [, plan] = await site.database.db.asUser(ada.owner.id).transaction(async (db) => {
      await db.query('SET LOCAL enable_seqscan = off');
      await db.query('SET LOCAL enable_sort = off');
      const rows = await db.query<{ 'QUERY PLAN': string }>(
        `EXPLAIN SELECT id FROM ${table} WHERE user_id = $userId ORDER BY ${at} DESC, id DESC LIMIT 9`,
        { userId: ada.owner.id },
      );
      return rows.map((row) => row['QUERY PLAN']);
    });
    expect(plan).toContain(`Backward using ${index}`);
  }
});
