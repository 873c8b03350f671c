import { randomUUID } from 'node:crypto';
import pino from 'pino';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { OperationKind, OperationStatus } from '../../src/types/operation-kinds.js';
import { admitOperation } from '../../src/agents/operations/operations.js';
import { ReleaseStore } from '../../src/agents/operations/release-store.js';
import { OperationStore } from '../../src/agents/operations/operation-store.js';
import type { AgentSupervisors } from '../../src/agents/operations/supervisors.js';
import type { WatchdogMemory } from '../../src/types/watchdog.js';
import type { AgentRow, OperationRow } from '../../src/platform/database/models.js';
import { UnavailableError } from '../../src/lib/errors.js';
import { NEVER_BEGUN, recoverOperations, SUPERVISOR_ENDED } from '../../worker/recover.js';
import { queryRows } from '../platform/database/catalog.js';
import { insertSql, ROWS } from '../platform/database/rows.js';
import { testDatabase, type TestDatabase } from '../support/postgres.js';
import { testSecrets } from '../support/secrets.js';

const USER = 'alice';

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
  await queryRows(database.ownerUrl, insertSql('users', ROWS.users?.(USER, 1) ?? {}));
});
afterEach(() => queryRows(database.ownerUrl, 'DELETE FROM agents'));
afterAll(() => database?.close());

async function newAgent(values: Partial<AgentRow> = {}): Promise<string> {
  const id = randomUUID();
  await database.db.asUser(USER).transaction((db) =>
    db.Agent.create({
      id,
      userId: USER,
      name: id,
      subdomain: id,
      plan: 'solo',
      model: 'provider/model',
      aiProvider: 'provider',
      startedAt: new Date(),
      ...values,
    }),
  );
  return id;
}

/** Creates an open operation that was last checked ten minutes ago. */
async function open(
  agentId: string,
  kind: OperationKind,
  status: OperationStatus = 'requested',
): Promise<string> {
  const id = randomUUID();
  const past = new Date(Date.now() - 10 * 60_000);
  await database.db
    .asUser(USER)
    .transaction((db) =>
      db.Operation.create({ id, agentId, userId: USER, kind, status, lookedAt: past }),
    );
  return id;
}

async function operation(id: string): Promise<OperationRow | null> {
  return database.db.asUser(USER).transaction((db) => db.Operation.findByPk(id));
}

/** Returns supervisors without operations that record the requests they receive. */
function supervisors(over: Partial<AgentSupervisors> = {}) {
  const reported: string[] = [];
  const receive = (operationId: string) => {
    reported.push(operationId);
    return Promise.resolve({ operationId, run: undefined });
  };
  return {
    reported,
    provision: (_agent, operationId) => receive(operationId),
    request: (_agent, _kind, operationId) => receive(operationId),
    hasRequest: () => Promise.resolve(false),
    isInFlight: () => Promise.resolve(false),
    ping: () => Promise.resolve(),
    ...over,
  } satisfies AgentSupervisors & { reported: string[] };
}

async function recover(by: AgentSupervisors, releases = new ReleaseStore(database.db)) {
  const { db } = database;
  const services = { operationStore: new OperationStore(db, testSecrets()), releases };
  const log = pino({ enabled: false });
  await recoverOperations({ database: db, supervisors: by, services, log });
}

describe('recovery of operations', () => {
  test.each([
    ['fails', () => new TypeError('error of this operation only')],
    ['waits for Temporal', () => new UnavailableError('no answer')],
  ])('an operation that %s does not delay the others', async (_, failure) => {
    const failing = await open(await newAgent(), 'delete');
    const others = [
      await open(await newAgent(), 'delete'),
      await open(await newAgent(), 'provision'),
    ];
    const by = supervisors();
    await recover({
      ...by,
      request: (agent, kind, id) => {
        if (id === failing) throw failure();
        return by.request(agent, kind, id);
      },
    });
    expect(by.reported.toSorted()).toEqual(others.toSorted());
    expect(await operation(failing)).toMatchObject({ status: 'requested' });
  });

  test('several workers together recover each operation once', async () => {
    const agents = await Promise.all(Array.from({ length: 30 }, () => newAgent()));
    const ids = await Promise.all(agents.map((agentId) => open(agentId, 'delete')));
    const by = supervisors();
    await Promise.all([recover(by), recover(by), recover(by)]);
    expect(by.reported.toSorted()).toEqual(ids.toSorted());
    await recover(by);
    expect(by.reported).toHaveLength(ids.length);
  });

  test.each(['requested', 'running'] as const)(
    'cancels a %s operation of a removed agent',
    async (status) => {
      const id = await open(
        await newAgent({ desired: 'deleted', deletedAt: new Date() }),
        'restart',
        status,
      );
      const by = supervisors();
      await recover(by);
      expect(await operation(id)).toMatchObject({ status: 'cancelled' });
      expect(by.reported).toEqual([]);
    },
  );

  test('cancels operations that precede a removal and requests the removal again', async () => {
    const agentId = await newAgent({ desired: 'deleted' });
    const [restart, provision] = [await open(agentId, 'restart'), await open(agentId, 'provision')];
    const removal = await open(agentId, 'delete');
    const by = supervisors();
    await recover(by);
    expect(by.reported).toEqual([removal]);
    expect(await operation(restart)).toMatchObject({ status: 'cancelled' });
    expect(await operation(provision)).toMatchObject({ status: 'cancelled' });
  });

  test.each(['failed', 'cancelled'] as const)(
    'requests a removal that %s again, each time after as long as the last attempt took',
    async (status) => {
      const agentId = await newAgent({ desired: 'deleted' });
      const first = await open(agentId, 'delete');
      await queryRows(
        database.ownerUrl,
        `UPDATE operations SET status = '${status}', requested_at = now() - interval '7 minutes',
                finished_at = now() - interval '2 minutes' WHERE id = '${first}'`,
      );
      const by = supervisors();
      await recover(by);
      expect(by.reported).toEqual([]);
      await queryRows(
        database.ownerUrl,
        `UPDATE operations SET requested_at = now() - interval '15 minutes',
                finished_at = now() - interval '10 minutes' WHERE id = '${first}'`,
      );
      await Promise.all([recover(by), recover(by)]);
      expect(by.reported).toHaveLength(1);
      expect(by.reported).not.toContain(first);
      expect(await operation(by.reported[0] ?? '')).toMatchObject({ kind: 'delete', agentId });
    },
  );

  test('removes an operation that no supervisor has received', async () => {
    const id = await open(await newAgent(), 'restart');
    await recover(supervisors({ hasRequest: () => Promise.resolve(true) }));
    expect(await operation(id)).toMatchObject({ status: 'requested' });
    await database.db.asPlatform().query(`UPDATE operations SET looked_at = '2000-01-01'`);
    await recover(supervisors());
    expect(await operation(id)).toBeNull();
  });

  test('keeps an operation that is accepted during the recovery', async () => {
    const id = await open(await newAgent(), 'restart');
    const knows = async () => {
      await admitOperation(database.db.asUser(USER), id);
      return false;
    };
    await recover(supervisors({ hasRequest: knows }));
    expect(await operation(id)).toMatchObject({ status: 'requested', finishedAt: null });
  });

  test('fails an accepted operation that no supervisor has, and records it in the audit log', async () => {
    const agentId = await newAgent();
    const id = await open(agentId, 'restart');
    await queryRows(
      database.ownerUrl,
      `UPDATE operations SET admitted_at = now(), requested_by = 'ada' WHERE id = '${id}'`,
    );
    await recover(supervisors({ hasRequest: () => Promise.resolve(true) }));
    expect(await operation(id)).toMatchObject({ status: 'requested' });
    await database.db.asPlatform().query(`UPDATE operations SET looked_at = '2000-01-01'`);
    await recover(supervisors());
    expect(await operation(id)).toMatchObject({ status: 'failed', error: NEVER_BEGUN });
    const audited = await queryRows(
      database.ownerUrl,
      `SELECT actor, action FROM audit_log WHERE subject = '${agentId}'`,
    );
    expect(audited).toEqual([{ actor: 'ada', action: 'agent.restart' }]);
  });

  test('fails an operation whose supervisor run has closed, with that reason', async () => {
    const agentId = await newAgent({ status: 'pending', startedAt: null });
    const [lost, alive] = [
      await open(agentId, 'provision', 'running'),
      await open(await newAgent(), 'restart', 'running'),
    ];
    await recover(supervisors({ isInFlight: (_agent, id) => Promise.resolve(id === alive) }));
    expect(await operation(lost)).toMatchObject({ status: 'failed', error: SUPERVISOR_ENDED });
    expect(await operation(alive)).toMatchObject({ status: 'running' });
    const agent = await database.db
      .asUser(USER)
      .transaction((db) => db.Agent.findByPk(agentId, { attributes: ['status', 'statusReason'] }));
    expect(agent).toEqual({ status: 'error', statusReason: SUPERVISOR_ENDED });
  });

  test('keeps an agent active that the next supervisor has started', async () => {
    const watchdog: WatchdogMemory = {
      version: 3,
      state: 'running',
      since: 1,
      crashes: [],
      repairAttempts: 0,
      lastRepair: null,
    };
    const agentId = await newAgent({ status: 'active', desired: 'running', watchdog });
    const lost = await open(agentId, 'update', 'running');
    await recover(supervisors());
    expect(await operation(lost)).toMatchObject({ status: 'failed', error: SUPERVISOR_ENDED });
    const agent = await database.db
      .asUser(USER)
      .transaction((db) => db.Agent.findByPk(agentId, { attributes: ['status', 'statusReason'] }));
    expect(agent).toEqual({ status: 'active', statusReason: null });
  });

  test('keeps both memories of an agent whose reset was interrupted', async () => {
    const agentId = await newAgent({ volume: 'old' });
    const id = await open(agentId, 'reset-memory', 'running');
    await new ReleaseStore(database.db).beginRelease({ agentId, userId: USER, host: 'local' }, id);
    await recover(supervisors());
    const [archive] = await database.db
      .asUser(USER)
      .transaction((db) => db.AgentArchive.findAll({ where: { agentId } }));
    expect(archive).toMatchObject({ volume: 'old', reason: 'reset-memory' });
  });

  test('does not end an operation before its memories are kept', async () => {
    class Failing extends ReleaseStore {
      override keepRelease(): Promise<void> {
        return Promise.reject(new Error('database unavailable'));
      }
    }
    const id = await open(await newAgent({ volume: 'old' }), 'reset-memory', 'running');
    await recover(supervisors(), new Failing(database.db));
    expect(await operation(id)).toMatchObject({ status: 'running' });
  });

  test('skips an operation that another transaction has locked', async () => {
    const [held, free] = [
      await open(await newAgent(), 'delete'),
      await open(await newAgent(), 'delete'),
    ];
    const by = supervisors();
    await database.db.asPlatform().transaction(async (db) => {
      await db.query('SELECT FROM operations WHERE id = $held FOR UPDATE', { held });
      await recover(by);
      expect(by.reported).toEqual([free]);
    });
  });

  test('reads few rows, however long the history is', async () => {
    const agentId = await newAgent();
    await queryRows(
      database.ownerUrl,
      `INSERT INTO operations (id, agent_id, user_id, kind, status, finished_at)
       SELECT 'old-' || n, '${agentId}', '${USER}', 'stop', 'succeeded', now()
         FROM generate_series(1, 5000) n`,
    );
    await queryRows(database.ownerUrl, 'ANALYZE operations');
    const plan = await queryRows<{ 'QUERY PLAN': string }>(
      database.ownerUrl,
      `EXPLAIN SELECT id FROM operations
        WHERE finished_at IS NULL AND looked_at < now() ORDER BY looked_at LIMIT 200`,
    );
    expect(JSON.stringify(plan)).toContain('operations_open');
    // The index excludes ended operations.
    const [index] = await queryRows<{ indexdef: string }>(
      database.ownerUrl,
      `SELECT indexdef FROM pg_indexes WHERE indexname = 'operations_open'`,
    );
    expect(index?.indexdef).toContain('WHERE (finished_at IS NULL)');
  });
});
