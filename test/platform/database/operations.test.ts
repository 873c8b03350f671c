import { randomUUID } from 'node:crypto';
import pino from 'pino';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { grantPlan } from '../../../src/accounts/accounts/subscriptions.js';
import { REQUESTED_KINDS, type OperationKind } from '../../../src/types/operation-kinds.js';
import {
  admitOperation,
  requestOperation,
  withdrawOperation,
} from '../../../src/agents/operations/operations.js';
import { AgentOperations } from '../../../src/agents/lifecycle/agent-operations.js';
import { OperationStore } from '../../../src/agents/operations/operation-store.js';
import { WatchdogStore } from '../../../src/agents/watchdog/watchdog-store.js';
import type { AgentSupervisors } from '../../../src/agents/operations/supervisors.js';
import type { AgentRef } from '../../../src/types/agent-ref.js';
import { AgentGoneError } from '../../../src/agents/agents/agents.js';
import type { WatchdogTransition } from '../../../src/types/watchdog.js';
import type { AgentRow, OperationRow } from '../../../src/platform/database/models.js';
import type { TenantDatabase } from '../../../src/platform/database/database.js';
import { ConflictError, UnavailableError } from '../../../src/lib/errors.js';
import { shippedModels } from '../../support/models.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';
import { until } from '../../support/until.js';
import { testSecrets } from '../../support/secrets.js';
import { queryRows } from './catalog.js';
import { insertSql, ROWS } from './rows.js';

const secrets = testSecrets();

let database: TestDatabase;
let store: OperationStore;
let tenant: TenantDatabase;

beforeAll(async () => {
  database = await testDatabase();
  await queryRows(database.ownerUrl, insertSql('users', ROWS.users?.('alice', 1) ?? {}));
  const host = ROWS.hosts?.('local', 1) ?? {};
  await queryRows(database.ownerUrl, insertSql('hosts', host));
  store = new OperationStore(database.db, secrets);
  tenant = database.db.asUser('alice');
  await grantPlan(database.db, 'alice', 'solo', { actor: 'operator', requestId: 'request' });
});
afterAll(() => database?.close());

const BY = { actor: 'ada', requestId: 'request' };
const ENDS = ['succeeded', 'failed', 'cancelled'] as const;

async function newAgent(values: Partial<AgentRow> = {}): Promise<AgentRef> {
  const id = randomUUID();
  const name = { name: id, subdomain: id };
  const model = { plan: 'solo', model: 'provider/model', aiProvider: 'provider' } as const;
  await tenant.transaction((db) =>
    db.Agent.create({ id, userId: 'alice', ...name, ...model, ...values }),
  );
  return { agentId: id, userId: 'alice', host: 'local' };
}

/** Records the request of an operation. */
async function request(
  agent: AgentRef,
  kind: OperationKind,
  id: string = randomUUID(),
): Promise<string> {
  await requestOperation(tenant, { id: agent.agentId, userId: 'alice' }, { id, kind, by: BY });
  return id;
}

const begin = (agent: AgentRef, kind: OperationKind, id: string) =>
  store.begin(agent, { id, kind, runId: 'run', transition: crashesForgotten() });

test('a removal requested while another operation begins is not undone by that operation', async () => {
  const agent = await newAgent();
  const id = await request(agent, 'restart');
  let removed = () => {};
  const removal = new Promise<void>((resolve) => (removed = resolve));
  let asked = () => {};
  const isAsked = new Promise<void>((resolve) => (asked = resolve));
  const removing = tenant.transaction(async (db) => {
    await db.Agent.update({ desired: 'deleted' }, { where: { id: agent.agentId } });
    asked();
    await removal;
  });
  await isAsked;
  const beginning = begin(agent, 'restart', id);
  await until(async () => {
    const [{ waiting } = { waiting: 0 }] = await queryRows<{ waiting: number }>(
      database.ownerUrl,
      `SELECT count(*)::int AS waiting FROM pg_locks WHERE NOT granted`,
    );
    return waiting > 0;
  });
  removed();
  await Promise.all([removing, beginning]);
  const [row] = await queryRows(
    database.ownerUrl,
    `SELECT desired FROM agents WHERE id = '${agent.agentId}'`,
  );
  expect(row).toEqual({ desired: 'deleted' });
});

/** Version of the watchdog's memory, later than any stored one. */
let version = 0;

function crashesForgotten(): WatchdogTransition {
  const memory = { version: ++version, crashes: [], repairAttempts: 0, lastRepair: null };
  return {
    id: randomUUID(),
    from: 'crash_loop',
    cause: 'operation',
    reason: null,
    memory: { state: 'starting', since: 0, ...memory },
  };
}

const agentRow = ({ agentId }: AgentRef): Promise<AgentRow> =>
  tenant.transaction((db) => db.Agent.getByPk(agentId));

const operationRow = (id: string): Promise<OperationRow | null> =>
  tenant.transaction((db) => db.Operation.findByPk(id));

const audited = ({ agentId }: AgentRef) =>
  tenant.query<{ action: string; actor: string; requestId: string; operationId: string }>(
    `SELECT action, actor, request_id AS "requestId", detail ->> 'operationId' AS "operationId"
       FROM audit_log WHERE subject = $agentId ORDER BY id`,
    { agentId },
  );

describe('a removal that is requested while another is open', { tags: 'attack' }, () => {
  const away = () => Promise.reject(new UnavailableError('no answer'));
  const remove = (
    agent: AgentRef,
    idempotencyId: string,
    ask: AgentSupervisors['request'] = away,
  ) =>
    operationsBy(ask).remove(
      { tenant, actor: 'ada', requestId: 'request', idempotencyId },
      agent.agentId,
    );
  const rowsOf = ({ agentId }: AgentRef) =>
    tenant.query<{ id: string; requestedAt: Date }>(
      'SELECT id, requested_at AS "requestedAt" FROM operations WHERE agent_id = $agentId',
      { agentId },
    );

  test('repeated removals join the open one and record nothing more, under any key', async () => {
    const agent = await newAgent();
    const first = randomUUID();
    await remove(agent, first);
    const [row] = await rowsOf(agent);
    await Promise.all(Array.from({ length: 10 }, () => remove(agent, randomUUID())));
    expect(await rowsOf(agent)).toEqual([row]);
    expect(await audited(agent)).toHaveLength(1);
    // Each repetition requests the open removal again.
    const asked: unknown[] = [];
    const ask: AgentSupervisors['request'] = (_agent, kind, id, requestedAt) => {
      asked.push({ kind, id, requestedAt });
      return admitted(id);
    };
    expect(await remove(agent, randomUUID(), ask)).toMatchObject({ operationId: first });
    expect(await remove(agent, first, ask)).toMatchObject({ operationId: first });
    const same = { kind: 'delete', id: first, requestedAt: row?.requestedAt };
    expect(asked).toEqual([same, same]);
  });

  test('concurrent removals become one', async () => {
    const agent = await newAgent();
    await Promise.all(Array.from({ length: 10 }, () => remove(agent, randomUUID())));
    expect(await rowsOf(agent)).toHaveLength(1);
    expect(await audited(agent)).toHaveLength(1);
  });

  test('a removal after an unsuccessful one is a new operation', async () => {
    const agent = await newAgent();
    const [first, second] = [await request(agent, 'delete'), randomUUID()];
    const failed = { id: first, kind: 'delete', status: 'failed', error: 'Docker' } as const;
    await store.finish(agent, failed);
    await remove(agent, second);
    expect(await operationRow(second)).toMatchObject({ status: 'requested' });
    // A repetition by the first key still returns the first removal.
    expect(await remove(agent, first)).toMatchObject({ operationId: first });
    expect(await rowsOf(agent)).toHaveLength(2);
  });

  test('a removal is kept if the supervisor names an unknown operation', async () => {
    const agent = await newAgent();
    const id = randomUUID();
    const phantom = await remove(agent, id, () => admitted(randomUUID()));
    expect(phantom).toMatchObject({ operationId: id });
    expect(await operationRow(id)).toMatchObject({ status: 'requested' });
  });
});

describe('an operation that has ended', () => {
  test.each(ENDS)(
    'an operation that has ended as %s is never begun again and changes nothing',
    async (status) => {
      const agent = await newAgent({ desired: 'stopped' });
      const id = await request(agent, 'start');
      expect(await begin(agent, 'start', id)).toBe('begun');
      await store.finish(agent, { id, kind: 'start', status, error: null });
      const next = await request(agent, 'stop');
      expect(await begin(agent, 'stop', next)).toBe('begun');
      await store.finish(agent, { id: next, kind: 'stop', status, error: null });
      const before = await agentRow(agent);

      // The same Idempotency-Key in a run that has no record of it.
      expect(await request(agent, 'start', id)).toBe(id);
      expect(await begin(agent, 'start', id)).toBe('withdrawn');
      // A late end from a worker that missed the first one's confirmation.
      await store.finish(agent, { id, kind: 'start', status: 'failed', error: 'late' });
      expect(await agentRow(agent)).toEqual(before);
      expect(await operationRow(id)).toMatchObject({ status });
      expect(await audited(agent)).toHaveLength(2);
    },
  );
});

describe('the status of an agent after an operation', () => {
  /** Returns the status after `kind` succeeded on an agent in error over a missing memory. */
  const after = async (kind: OperationKind, startedAt: Date | null) => {
    const trouble = { status: 'error', statusReason: 'its memory is missing' } as const;
    const agent = await newAgent({ desired: 'stopped', startedAt, ...trouble });
    const id = await request(agent, kind);
    expect(await begin(agent, kind, id)).toBe('begun');
    await store.finish(agent, { id, kind, status: 'succeeded', error: null });
    const { status, statusReason } = await agentRow(agent);
    return { status, statusReason };
  };

  test.each(['reset-memory', 'restore', 'reset-empty'] as const)(
    "an operation that restores a stopped agent's memory clears its error: %s",
    async (kind) => {
      expect(await after(kind, new Date())).toEqual({ status: 'stopped', statusReason: null });
    },
  );

  test.each([
    ['running', 'stopped', 'error'],
    ['stopped', 'stopped', 'stopped'],
    ['running', 'running', 'stopped'],
    ['degraded', 'running', 'error'],
  ] as const)(
    'a failed update of an agent that is observed %s and should be %s leaves the status %s',
    async (state, desired, status) => {
      const watchdog = { ...crashesForgotten().memory, state };
      const agent = await newAgent({ desired, status: 'stopped', watchdog });
      const id = await request(agent, 'update');
      const failed = { status: 'failed', error: 'its supervisor was ended' } as const;
      await store.finish(agent, { id, kind: 'update', ...failed });
      expect((await agentRow(agent)).status).toBe(status);
    },
  );

  test('a failed update leaves the status active if the next supervisor observes the agent running', async () => {
    const watchdog = { ...crashesForgotten().memory, state: 'starting' } as const;
    const agent = await newAgent({ desired: 'running', status: 'active', watchdog });
    const id = await request(agent, 'update');
    const failed = { kind: 'update', status: 'failed', error: 'its supervisor was ended' } as const;
    let finishing: Promise<void> | undefined;
    await tenant.transaction(async (db) => {
      const known = { ...watchdog, state: 'running' } as const;
      await db.Agent.update({ watchdog: known }, { where: { id: agent.agentId } });
      finishing = store.finish(agent, { id, ...failed });
      // The end of the operation waits for the row lock.
      await until(async () => {
        const waiting = `SELECT pid FROM pg_locks JOIN pg_stat_activity USING (pid)
          WHERE datname = current_database() AND NOT granted`;
        return (await queryRows(database.ownerUrl, waiting)).length > 0;
      });
    });
    await finishing;
    expect((await agentRow(agent)).status).toBe('active');
  });

  test('an operation that restores no memory, or an agent that never ran, keeps the error', async () => {
    const trouble = { status: 'error', statusReason: 'its memory is missing' };
    expect(await after('configure', new Date())).toEqual(trouble);
    expect(await after('restore', null)).toEqual(trouble);
  });
});

test('beginning an operation and its audit record succeed or fail together', async () => {
  const agent = await newAgent({ desired: 'stopped' });
  const id = await request(agent, 'start');
  const before = await agentRow(agent);
  const alter = (what: string) => queryRows(database.ownerUrl, `ALTER TABLE audit_log ${what}`);
  await alter(`ADD CONSTRAINT no_starts CHECK (action <> 'agent.start') NOT VALID`);
  await expect(begin(agent, 'start', id)).rejects.toThrow();
  await alter('DROP CONSTRAINT no_starts');
  expect(await operationRow(id)).toMatchObject({ status: 'requested' });
  expect(await agentRow(agent)).toEqual(before);
  expect(await begin(agent, 'start', id)).toBe('begun');
  expect(await audited(agent)).toEqual([
    { action: 'agent.start', actor: BY.actor, requestId: BY.requestId, operationId: id },
  ]);
});

test('a begin or a removal that fails at commit leaves no audit record', async () => {
  const agent = await newAgent();
  const id = await request(agent, 'restart');
  await queryRows(
    database.ownerUrl,
    `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql
       AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$;
     CREATE CONSTRAINT TRIGGER refused AFTER INSERT OR UPDATE ON operations
       DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()`,
  );
  vi.spyOn(console, 'warn').mockImplementation(() => undefined); // Sequelize logs the error, too
  onTestFinished(() => void vi.restoreAllMocks());
  await expect(begin(agent, 'restart', id)).rejects.toThrow();
  await expect(request(agent, 'delete')).rejects.toThrow();
  await queryRows(database.ownerUrl, 'DROP FUNCTION refuse CASCADE');
  expect(await operationRow(id)).toMatchObject({ status: 'requested' });
  expect(await audited(agent)).toEqual([]);
});

describe('an operation that cannot begin any more', () => {
  test('an operation is cancelled because its agent is being removed', async () => {
    const agent = await newAgent();
    const id = await request(agent, 'restart');
    await request(agent, 'delete');
    expect(await begin(agent, 'restart', id)).toBe('withdrawn');
    expect(await operationRow(id)).toMatchObject({ status: 'cancelled' });
  });

  test('an operation is cancelled because its agent was removed', async () => {
    const agent = await newAgent({ desired: 'deleted', deletedAt: new Date() });
    const id = await request(agent, 'restart');
    expect(await begin(agent, 'restart', id)).toBe('gone');
    expect(await operationRow(id)).toMatchObject({ status: 'cancelled' });
  });
});

describe('the audit log', () => {
  test('the audit log has a removal from the moment of its request', async () => {
    const agent = await newAgent();
    const operationId = await request(agent, 'delete');
    const record = { action: 'agent.delete', actor: 'ada', requestId: 'request', operationId };
    expect(await audited(agent)).toEqual([record]);
    await request(agent, 'delete', operationId);
    await begin(agent, 'delete', operationId);
    expect(await audited(agent)).toEqual([record]);
  });

  test('the audit log has a cancellable operation once, from its begin', async () => {
    const agent = await newAgent();
    const operationId = await request(agent, 'restart');
    expect(await audited(agent)).toEqual([]);
    await begin(agent, 'restart', operationId);
    await begin(agent, 'restart', operationId);
    const record = { action: 'agent.restart', actor: 'ada', requestId: 'request', operationId };
    expect(await audited(agent)).toEqual([record]);
  });

  test('the audit log has no record of an operation that was withdrawn', async () => {
    const agent = await newAgent();
    const id = await request(agent, 'restart');
    expect(await withdrawOperation(tenant, id)).toBe(true);
    expect(await begin(agent, 'restart', id)).toBe('withdrawn');
    expect(await audited(agent)).toEqual([]);
    expect((await agentRow(agent)).watchdog).toBeNull();
  });

  test.each(REQUESTED_KINDS)('the audit log records a %s in the same transaction', async (kind) => {
    const agent = await newAgent();
    const id = await request(agent, kind);
    await begin(agent, kind, id);
    expect((await audited(agent)).map(({ action }) => action)).toEqual([`agent.${kind}`]);
  });
});

test('a late report about a removed agent changes nothing', async () => {
  const agent = await newAgent({ desired: 'deleted', deletedAt: new Date() });
  const before = await agentRow(agent);
  const late = crashesForgotten();
  const states = new WatchdogStore(database.db);
  await states.recordRunning(agent);
  await expect(states.recordTransition(agent, late)).rejects.toBeInstanceOf(AgentGoneError);
  const attempt = { id: randomUUID(), memory: { ...late.memory, lastRepair: 1 }, maxAttempts: 3 };
  await expect(states.recordRepairAttempt(agent, attempt)).rejects.toBeInstanceOf(AgentGoneError);
  expect(await states.load(agent)).toBeNull();
  expect(await agentRow(agent)).toEqual(before);
});

test('an operation that has begun cannot be withdrawn', async () => {
  const agent = await newAgent();
  const id = await request(agent, 'restart');
  await begin(agent, 'restart', id);
  expect(await withdrawOperation(tenant, id)).toBe(false);
  expect(await operationRow(id)).toMatchObject({ status: 'running' });
});

test('the times of an operation are from the clock of the database', async () => {
  const agent = await newAgent();
  vi.useFakeTimers({ toFake: ['Date'], now: 0 });
  onTestFinished(() => void vi.useRealTimers());
  const id = await request(agent, 'restart');
  expect(await admitOperation(tenant, id)).toBe(true);
  await begin(agent, 'restart', id);
  await store.finish(agent, { id, kind: 'restart', status: 'failed', error: null });
  const { requestedAt, lookedAt, admittedAt, finishedAt } = (await operationRow(id)) ?? {};
  const [clock] = await tenant.query<{ now: Date }>('SELECT now()');
  for (const at of [requestedAt, lookedAt, admittedAt, finishedAt]) {
    const age = Number(clock?.now) - Number(at);
    expect(age).toBeGreaterThanOrEqual(0);
    expect(age).toBeLessThan(60_000);
  }
});

describe('a request', () => {
  /** Requests a restart as the API does, with the given answer of the supervisor. */
  async function restart(
    agent: AgentRef,
    request: AgentSupervisors['request'],
    idempotencyId: string = randomUUID(),
  ) {
    const by = { tenant, actor: 'ada', requestId: 'request', idempotencyId };
    return operationsBy(request).run(by, agent.agentId, 'restart');
  }

  const unanswered = () => Promise.reject(new UnavailableError('no answer'));

  test('a request that cannot reach the supervisor is refused and leaves nothing', async () => {
    const agent = await newAgent();
    const id = randomUUID();
    await expect(restart(agent, unanswered, id)).rejects.toThrow(UnavailableError);
    expect(await operationRow(id)).toBeNull();
    expect(await audited(agent)).toEqual([]);
  });

  test('a request that seems lost but has begun is accepted', async () => {
    const agent = await newAgent();
    const id = randomUUID();
    const late = async () => {
      await begin(agent, 'restart', id);
      return unanswered();
    };
    expect(await restart(agent, late, id)).toMatchObject({ operationId: id });
    expect(await operationRow(id)).toMatchObject({ status: 'running' });
  });

  test('a request that a worker withdrew before its supervisor received it is refused and does not begin', async () => {
    const agent = await newAgent();
    const id = randomUUID();
    const late = async () => {
      await withdrawOperation(tenant, id);
      return admitted(id);
    };
    await expect(restart(agent, late, id)).rejects.toThrow(UnavailableError);
    expect(await begin(agent, 'restart', id)).toBe('withdrawn');
    expect(await operationRow(id)).toBeNull();
    expect(await audited(agent)).toEqual([]);
  });

  test('an accepted request is not withdrawn when its repetition cannot reach the supervisor', async () => {
    const agent = await newAgent();
    const id = randomUUID();
    await restart(agent, () => admitted(id), id);
    expect(await restart(agent, unanswered, id)).toMatchObject({ operationId: id });
    expect(await withdrawOperation(tenant, id)).toBe(false);
    expect(await operationRow(id)).toMatchObject({ status: 'requested' });
  });

  test.each(['configure', 'restore', 'update'] as const)(
    'a repeated request for a %s whose answer was lost returns the operation, whatever that changed',
    async (kind) => {
      const agent = await newAgent({ failedImage: 'image' });
      const id = await request(agent, kind);
      await begin(agent, kind, id);
      await store.finish(agent, { id, kind, status: 'failed', error: 'it did not start' });
      const by = { tenant, actor: 'ada', requestId: 'request', idempotencyId: id };
      const operations = operationsBy(() => admitted(id));
      // The skill and the archive are missing, and the image has failed.
      const repeat = {
        configure: () => operations.removeSkill(by, agent.agentId, 'gone'),
        restore: () => operations.restore(by, agent.agentId, 'gone'),
        update: () => operations.update(by, agent.agentId, undefined),
      };
      expect(await repeat[kind]()).toMatchObject({ operationId: id, kind, run: undefined });
    },
  );

  test('a request joins an equal operation that was accepted and waits for a worker', async () => {
    const agent = await newAgent();
    const first = randomUUID();
    await restart(agent, () => admitted(first), first);
    expect(await restart(agent, () => admitted(first))).toMatchObject({ operationId: first });
  });

  test.each(['running', ...ENDS] as const)(
    'a repeated request whose operation is %s is answered without the supervisor',
    async (status) => {
      const agent = await newAgent();
      const id = await request(agent, 'restart');
      await begin(agent, 'restart', id);
      if (status !== 'running') {
        await store.finish(agent, { id, kind: 'restart', status, error: null });
      }
      expect(await restart(agent, unanswered, id)).toMatchObject({ operationId: id });
      expect(await operationRow(id)).toMatchObject({ status });
    },
  );

  test('a request joins an equal operation that has begun', async () => {
    const agent = await newAgent();
    const first = await request(agent, 'restart');
    await begin(agent, 'restart', first);
    const joined = await restart(agent, () => admitted(first));
    expect(joined).toMatchObject({ operationId: first });
    expect((await audited(agent)).map(({ operationId }) => operationId)).toEqual([first, first]);
  });

  test('a request does not join a withdrawn operation and becomes its own operation', async () => {
    const agent = await newAgent();
    const [gone, id] = [randomUUID(), randomUUID()];
    const asked: Date[] = [];
    const admitting: AgentSupervisors['request'] = (_agent, _kind, operationId, requestedAt) => {
      if (requestedAt) asked.push(requestedAt);
      return admitted(asked.length === 1 ? gone : operationId);
    };
    expect(await restart(agent, admitting, id)).toMatchObject({ operationId: id });
    expect(await operationRow(id)).toMatchObject({ status: 'requested' });
    // The retry is a new request to the supervisor.
    expect(new Set(asked.map(Number)).size).toBe(2);
  });

  test('a request that finds only withdrawn operations is refused and stores nothing', async () => {
    const agent = await newAgent();
    const id = randomUUID();
    const phantom = restart(agent, () => admitted(randomUUID()), id);
    await expect(phantom).rejects.toThrow(ConflictError);
    expect(await operationRow(id)).toBeNull();
  });
});

function operationsBy(request: AgentSupervisors['request']): AgentOperations {
  return new AgentOperations({
    supervisors: { ...NOBODY, request },
    engines: { require: () => Promise.resolve() },
    secrets,
    images: { usual: 'image', versions: new Map() },
    aiProvider: 'openai',
    models: shippedModels(),
    accounts: { adminEmails: [] },
    log: pino({ enabled: false }),
  });
}

describe('a configuration that an operation brings', { tags: 'attack' }, () => {
  const config = { runtime: { channels: { telegram: { botToken: 'SECRET-TOKEN' } } } };
  const skill = { name: 'mail', enabled: true, config: { password: 'SECRET-PASSWORD' } };

  const rowsOf = async ({ agentId }: AgentRef) =>
    JSON.stringify(
      await tenant.query('SELECT * FROM operations WHERE agent_id = $agentId', { agentId }),
    );

  const configure = (agent: AgentRef, change: object, id: string, meets = id) =>
    operationsBy(() => admitted(meets)).configure(
      { tenant, actor: 'ada', requestId: 'request', idempotencyId: id },
      agent.agentId,
      change,
    );

  test('a configuration is stored encrypted with its operation and takes effect when that begins', async () => {
    const agent = await newAgent({ model: 'gpt-4', aiProvider: 'openai' });
    const id = randomUUID();
    await configure(agent, { config }, id);
    expect(await rowsOf(agent)).not.toContain('SECRET');
    await begin(agent, 'configure', id);
    expect(await agentRow(agent)).toMatchObject({ config });
  });

  test('the configuration of a skill is encrypted as well', async () => {
    const agent = await newAgent({ model: 'gpt-4', aiProvider: 'openai' });
    const id = randomUUID();
    const by = { tenant, actor: 'ada', requestId: 'request', idempotencyId: id };
    await operationsBy(() => admitted(id)).changeSkill(by, agent.agentId, skill);
    expect(await rowsOf(agent)).not.toContain('SECRET');
    await begin(agent, 'configure', id);
    const { name, ...entry } = skill;
    expect(await agentRow(agent)).toMatchObject({
      config: { runtime: { skills: { entries: { [name]: entry } } } },
    });
  });

  test('a configuration is erased when its operation ends, and all inputs with the agent', async () => {
    const agent = await newAgent({ model: 'gpt-4', aiProvider: 'openai' });
    const [id, removal] = [randomUUID(), randomUUID()];
    await configure(agent, { config }, id);
    await begin(agent, 'configure', id);
    await store.finish(agent, { id, kind: 'configure', status: 'succeeded', error: null });
    const { input } = (await operationRow(id)) ?? {};
    expect(input).not.toHaveProperty('sealed');
    await request(agent, 'delete', removal);
    await begin(agent, 'delete', removal);
    const end = { id: removal, kind: 'delete', status: 'succeeded', error: null } as const;
    await store.finish(agent, end);
    expect(await operationRow(id)).toMatchObject({ input: null });
  });

  test('a configuration joins an operation in flight only if both are equal', async () => {
    const agent = await newAgent({ model: 'gpt-4', aiProvider: 'openai' });
    const first = randomUUID();
    await configure(agent, { config }, first);
    await begin(agent, 'configure', first);
    expect(await configure(agent, { config }, randomUUID(), first)).toMatchObject({
      operationId: first,
    });
    const other = configure(agent, { config: { runtime: {} } }, randomUUID(), first);
    await expect(other).rejects.toThrow(ConflictError);
  });
});

const admitted = (operationId: string) => Promise.resolve({ operationId, run: undefined });

const NOBODY: AgentSupervisors = {
  provision: (_agent, id) => admitted(id),
  request: (_agent, _kind, id) => admitted(id),
  hasRequest: () => Promise.resolve(false),
  isInFlight: () => Promise.resolve(false),
  ping: () => Promise.resolve(),
};
