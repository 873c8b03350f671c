import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { ApplicationFailure } from '@temporalio/common';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRecordActivities } from '../../activities/records.js';
import { createReleaseRecordActivities } from '../../activities/releases.js';
import { grantPlan } from '../../src/accounts/accounts/subscriptions.js';
import type { RequestedKind } from '../../src/types/operation-kinds.js';
import { requestOperation } from '../../src/agents/operations/operations.js';
import { ReleaseStore } from '../../src/agents/operations/release-store.js';
import { OperationStore } from '../../src/agents/operations/operation-store.js';
import { AgentPorts } from '../../src/agents/agents/agent-ports.js';
import { WatchdogStore } from '../../src/agents/watchdog/watchdog-store.js';
import type { AgentRow, OperationRow } from '../../src/platform/database/models.js';
import { SUPERVISOR_ENDED } from '../../worker/recover.js';
import { queryRows } from '../platform/database/catalog.js';
import { insertSql, ROWS } from '../platform/database/rows.js';
import { testDatabase, type TestDatabase } from '../support/postgres.js';
import { Random } from '../support/random.js';
import { testSecrets } from '../support/secrets.js';
import { until } from '../support/until.js';
import { SETTINGS, type FakeAgent } from './support/fake-agent.js';
import { realServer } from './support/real-server.js';
import { RUNNING, WorkflowLab, type Supervised } from './support/workflow-lab.js';

const SEED = 4_711;
const AGENTS = 8;
const STEPS = 12;

const KINDS = [
  ...(['start', 'stop', 'restart', 'configure', 'update'] as const),
  ...(['reset-memory', 'reset-empty'] as const),
] satisfies readonly RequestedKind[];

/** Permanent failure of each Docker step. */
const FAILURES = {
  ensureImage: 'ImageUnavailableError',
  createContainer: 'PortTakenError',
  startContainer: 'ForeignContainerError',
  awaitReady: 'AgentNotReadyError',
  stopContainer: 'LastingRefusalError',
  makeVolume: 'VolumeTooLargeError',
} as const;

let database: TestDatabase;
let operations: OperationStore;
let releases: ReleaseStore;
let lab: WorkflowLab;
beforeAll(async () => {
  database = await testDatabase();
  await queryRows(database.ownerUrl, insertSql('users', ROWS.users?.('user', 1) ?? {}));
  await queryRows(database.ownerUrl, insertSql('hosts', ROWS.hosts?.('lab', 1) ?? {}));
  await grantPlan(database.db, 'user', 'solo', { actor: 'operator', requestId: 'request' });
  operations = new OperationStore(database.db, testSecrets());
  releases = new ReleaseStore(database.db);
  // Auto-repair is off, because a repair would take longer than the test waits.
  const settings = { ...SETTINGS, autoRepair: false, degradedCheckIntervalMs: 100 };
  const records = {
    ...createRecordActivities({
      operations,
      ports: new AgentPorts(database.db),
      settings: { ...settings, startupFailureThreshold: 1 },
      states: new WatchdogStore(database.db),
    }),
    ...createReleaseRecordActivities(releases),
  };
  lab = await WorkflowLab.open({ environment: realServer, records });
});
afterAll(async () => {
  await lab?.close();
  await database?.close();
});

/** An agent for random operations and failures. */
class Subject {
  readonly id = randomUUID();
  readonly history: string[] = [];
  isUp = true;
  readonly #random: Random;
  readonly #fake: FakeAgent;
  #supervisor: Supervised | undefined;
  #fails = false;

  constructor(random: Random) {
    this.#random = random;
    this.#fake = lab.agent(this.id);
    for (const [step, type] of Object.entries(FAILURES)) {
      // Object.entries widens the key type.
      this.#fake.on(step as keyof typeof FAILURES, () => {
        if (this.#fails && random.isOneIn(5)) {
          this.history.push(`${step} refused`);
          throw ApplicationFailure.nonRetryable(type, type);
        }
        if (step === 'makeVolume') this.#fake.memoryIsThere = true;
        if (step === 'startContainer') this.#become('up');
        if (step === 'stopContainer') this.#become('down');
      });
    }
  }

  async begin(): Promise<void> {
    const model = { plan: 'solo', model: 'provider/model', aiProvider: 'provider' } as const;
    const runs = { desired: 'running', status: 'active', startedAt: new Date() } as const;
    await this.#tenant.transaction((db) =>
      db.Agent.create({
        id: this.id,
        userId: 'user',
        name: this.id,
        subdomain: this.id,
        host: 'lab',
        ...model,
        ...runs,
        watchdog: RUNNING,
      }),
    );
    this.#supervisor = await lab.supervise(this.#fake);
  }

  /** Requests a random operation, which may fail or lose its supervisor, and waits for its end. */
  async step(): Promise<void> {
    const random = this.#random;
    if (random.isOneIn(8)) await this.#lose();
    this.#fails = random.isOneIn(2);
    const kind = random.pick(KINDS);
    const id = randomUUID();
    const agent = { id: this.id, userId: 'user' };
    const by = { actor: 'user', requestId: 'request' };
    const input = kind === 'update' && { input: { image: `image:${id}` } };
    await requestOperation(this.#tenant, agent, { id, kind, by, ...input });
    await this.#supervisor?.request(kind, id);
    if (random.isOneIn(4)) await this.#endSupervisor(id, kind);
    const { status } = await until(async () => {
      const row = await this.#operation(id);
      return row.finishedAt !== null && row;
    });
    this.#fails = false;
    this.history.push(`${kind} ${status}`);
  }

  /**
   * Wakes the supervisor if the agent is not in its desired state, as the pass over the host does. The
   * previous supervisor may have been terminated during a step.
   */
  async reconcile({ desired, watchdog }: AgentRow): Promise<void> {
    const isUnreported = desired === 'stopped' && watchdog?.state !== 'stopped';
    if (isUnreported || (desired === 'running') !== this.isUp) await this.#supervisor?.checkNow();
  }

  async said(): Promise<string> {
    const { status, statusReason, desired, watchdog } = await this.row();
    const known = `${status} (${statusReason}), desired ${desired}, watchdog ${watchdog?.state}`;
    return `${this.isUp ? 'up' : 'down'}, and said to be ${known}; ${this.history.slice(-8).join(', ')}`;
  }

  row(): Promise<AgentRow> {
    return this.#tenant.transaction((db) => db.Agent.getByPk(this.id));
  }

  #become(state: 'up' | 'down'): void {
    this.isUp = state === 'up';
    this.#fake.health = this.isUp ? 'healthy' : 'stopped';
  }

  /** Simulates the loss of the agent's container and volume. */
  async #lose(): Promise<void> {
    this.history.push('memory lost');
    this.#fake.memoryIsThere = false;
    this.#become('down');
    await this.#supervisor?.containerEnded();
  }

  /** Terminates the supervisor, then recovers its operation and starts the next supervisor in random order. */
  async #endSupervisor(id: string, kind: RequestedKind): Promise<void> {
    await delay(this.#random.below(120));
    await this.#supervisor?.handle.terminate();
    this.history.push('supervisor ended');
    const recover = async () => {
      const { status } = await this.#operation(id);
      if (status === 'requested') await operations.begin(this.#fake.ref, { id, kind, runId: '' });
      await releases.keepRelease(this.#fake.ref, id);
      const failed = { status: 'failed', error: SUPERVISOR_ENDED } as const;
      await operations.finish(this.#fake.ref, { id, kind, ...failed });
    };
    const next = async () => {
      this.#supervisor = await lab.superviseAgain(this.#fake);
    };
    const both = this.#random.isOneIn(2) ? [recover, next] : [next, recover];
    for (const each of both) {
      await each();
      await delay(this.#random.below(200));
    }
  }

  #operation(id: string): Promise<OperationRow> {
    return this.#tenant.transaction((db) => db.Operation.getByPk(id));
  }

  get #tenant() {
    return database.db.asUser('user');
  }
}

/** Reports whether an agent's row agrees with its actual state after all operations have ended. */
function isSo({ desired, status, statusReason, watchdog }: AgentRow, isUp: boolean): boolean {
  const state = watchdog?.state;
  switch (status) {
    case 'active':
      return desired === 'running' && state === 'running' && isUp;
    case 'stopped':
      return desired === 'stopped' && state === 'stopped' && !isUp;
    case 'error':
      if (desired === 'running') return state === 'crash_loop' || state === 'degraded';
      if (state === 'running') return statusReason === FAILURES.stopContainer;
      return !isUp && /memory is missing|rollback failed/.test(statusReason ?? '');
    default:
      return false;
  }
}

test("after random operations, failures and supervisor ends, every agent's row agrees with its state", async () => {
  const random = new Random(SEED);
  const subjects = Array.from({ length: AGENTS }, () => new Subject(random));
  await Promise.all(
    subjects.map(async (subject) => {
      await subject.begin();
      for (let step = 0; step < STEPS; step++) {
        await subject.step();
        const settled = async () => {
          const row = await subject.row();
          if (isSo(row, subject.isUp)) return true;
          await subject.reconcile(row);
          return subject.said();
        };
        await expect.poll(settled, { interval: 200 }).toBe(true);
      }
    }),
  );
});
