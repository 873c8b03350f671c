import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { ContainerEvent } from '../../src/docker/containers/container-events.js';
import type { Database } from '../../src/platform/database/database.js';
import type { WatchdogMemory } from '../../src/types/watchdog.js';
import { followDocker, type FollowDependencies } from '../../worker/follow-docker.js';
import { HostEvents } from '../../worker/host-events.js';
import { queryRows } from '../platform/database/catalog.js';
import { ROWS, insertSql } from '../platform/database/rows.js';
import { keptLog } from '../support/platform-environment.js';
import { testDatabase, type TestDatabase } from '../support/postgres.js';

const USER = 'user';

let database: TestDatabase;
const followers: Follower[] = [];

beforeAll(async () => {
  database = await testDatabase();
  await queryRows(database.ownerUrl, insertSql('users', ROWS.users?.(USER, 1) ?? {}));
});
afterAll(async () => {
  await Promise.all(followers.map((follower) => follower.end()));
  await database?.close();
});

function following(): Follower {
  const follower = new Follower();
  followers.push(follower);
  return follower;
}

/** A host's worker with a simulated Docker that records its notifications to supervisors. */
class Follower {
  readonly host = `host-${randomUUID()}`;
  readonly running = new Set<string>();
  readonly reported: string[] = [];
  readonly returns: number[] = [];
  isDatabaseAway = false;
  isDockerAway = false;
  /** Agents with an unreachable supervisor; `*` means all. */
  readonly unreachable = new Set<string>();
  /** Agents whose supervisors miss the return of Docker but receive the end of a container. */
  readonly deaf = new Set<string>();
  attempts = 0;
  /** True once container checks may begin. */
  isReported = false;
  readonly #hostEvents: HostEvents;
  readonly #events: ContainerEvent[] = [];
  readonly #stop = new AbortController();
  #more: () => void = () => undefined;
  readonly #following: Promise<void>;

  constructor() {
    const reach = (agentId: string) => {
      this.attempts++;
      const isAway = this.unreachable.has('*') || this.unreachable.has(agentId);
      return isAway ? Promise.reject(new Error('Temporal is unavailable')) : Promise.resolve();
    };
    const dependencies: FollowDependencies = {
      database: this.#database(),
      supervisors: {
        containerEnded: async ({ agentId }) => {
          await reach(agentId);
          this.reported.push(`end of ${agentId}`);
        },
        dockerReturned: async ({ agentId }, { awayFrom }) => {
          await reach(agentId);
          if (this.deaf.has(agentId)) throw new Error('Temporal is briefly unavailable');
          this.reported.push(`return to ${agentId}`);
          this.returns.push(awayFrom);
        },
      },
      // The parts of Docker that the follower uses.
      docker: {
        available: () => Promise.resolve(!this.isDockerAway),
        containers: { running: () => Promise.resolve(this.running) },
        events: () => this.#receive(),
      } as unknown as FollowDependencies['docker'],
      log: keptLog().log,
      host: this.host,
    };
    this.#hostEvents = new HostEvents(dependencies);
    this.#following = followDocker(dependencies, this.#stop.signal, this.#hostEvents);
    void this.#hostEvents
      .untilNotified(60_000, this.#stop.signal)
      .then(() => (this.isReported = true));
  }

  async agent(name: string, watchdog?: WatchdogMemory): Promise<string> {
    const id = `${name}-${randomUUID().slice(0, 8)}`;
    const { host } = this;
    await database.db.asUser(USER).transaction((db) =>
      db.Agent.create({
        id,
        userId: USER,
        name: id,
        subdomain: id,
        host,
        plan: 'solo',
        model: 'provider/model',
        aiProvider: 'provider',
        desired: 'running',
        status: 'active',
        startedAt: new Date(),
        watchdog: watchdog ?? null,
      }),
    );
    return id;
  }

  receives(...events: ContainerEvent[]): void {
    this.#events.push(...events);
    this.#more();
  }

  connects(lostAt?: number): void {
    this.receives({ kind: 'connected', lostAt });
  }

  loses(): void {
    this.receives({ kind: 'lost', reason: 'gone' });
  }

  ends(agentId: string, at = Date.now()): void {
    this.receives({
      kind: 'death',
      agentId,
      userId: USER,
      containerId: 'c',
      cause: 'kill',
      exitCode: 137,
      at,
    });
  }

  async end(): Promise<void> {
    this.#stop.abort();
    this.#more();
    await this.#following;
  }

  async *#receive(): AsyncGenerator<ContainerEvent> {
    while (!this.#stop.signal.aborted) {
      const event = this.#events.shift();
      if (event) yield event;
      else await new Promise<void>((resolve) => (this.#more = resolve));
    }
  }

  #database(): Database {
    return new Proxy(database.db, {
      get: (target, name) => {
        if (this.isDatabaseAway) throw new Error('PostgreSQL is unavailable');
        const value: unknown = Reflect.get(target, name);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  }
}

const crashLoop = (since: number): WatchdogMemory => ({
  state: 'crash_loop',
  since,
  crashes: [],
  repairAttempts: 0,
  lastRepair: null,
  version: 1,
});

/** Exceeds the period in which a limited number of retries would have been used up. */
const LONG_MS = 12_000;
const rest = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

// The tests mostly wait, so they run concurrently.
describe.concurrent('notifications of a worker to supervisors', () => {
  test("notifies each agent once of Docker's return when PostgreSQL and Temporal are back", async ({
    expect,
  }) => {
    const follower = following();
    const [first, second] = [await follower.agent('first'), await follower.agent('second')];
    const up = await follower.agent('up');
    follower.running.add(up);
    follower.isDatabaseAway = true;
    follower.unreachable.add('*');
    follower.connects(1_000_000);
    await rest(LONG_MS);
    follower.isDatabaseAway = false;
    await expect.poll(() => follower.attempts).toBeGreaterThan(0);
    follower.unreachable.clear();
    await expect.poll(() => follower.reported.length).toBe(2);
    expect(follower.reported.sort()).toEqual([`return to ${first}`, `return to ${second}`]);
    expect(follower.returns).toEqual([970_000, 970_000]);
  });

  test('an unreachable supervisor neither delays the others nor repeats their notification', async ({
    expect,
  }) => {
    const follower = following();
    const [stuck, well] = [await follower.agent('stuck'), await follower.agent('well')];
    follower.unreachable.add(stuck);
    follower.connects(1_000_000);
    await expect.poll(() => follower.reported).toEqual([`return to ${well}`]);
    await expect.poll(() => follower.attempts).toBeGreaterThan(2);
    follower.ends(well);
    follower.ends(stuck);
    await expect.poll(() => follower.reported).toEqual([`return to ${well}`, `end of ${well}`]);
    expect(follower.isReported).toBe(false);
    follower.unreachable.clear();
    await expect.poll(() => follower.reported.length).toBe(4);
    expect(follower.isReported).toBe(true);
    expect(follower.reported.slice(2)).toEqual([`return to ${stuck}`, `end of ${stuck}`]);
  });

  test("an end is not sent to a supervisor that has not received Docker's return", async ({
    expect,
  }) => {
    const follower = following();
    const [deaf, well] = [await follower.agent('deaf'), await follower.agent('well')];
    follower.deaf.add(deaf);
    follower.connects(1_000_000);
    await expect.poll(() => follower.reported).toEqual([`return to ${well}`]);
    follower.ends(deaf);
    follower.ends(well);
    const attempts = follower.attempts;
    await expect.poll(() => follower.attempts).toBeGreaterThan(attempts + 3);
    expect(follower.reported).toEqual([`return to ${well}`, `end of ${well}`]);
    follower.deaf.clear();
    await expect
      .poll(() => follower.reported.slice(2))
      .toEqual([`return to ${deaf}`, `end of ${deaf}`]);
  });

  test("an end is sent after Docker's return, and kept while supervisors are unreachable", async ({
    expect,
  }) => {
    const follower = following();
    const [crashed, down] = [await follower.agent('crashed'), await follower.agent('down')];
    follower.running.add(crashed);
    follower.connects(1_000_000);
    await expect.poll(() => follower.reported).toEqual([`return to ${down}`]);
    follower.unreachable.add('*');
    for (let again = 0; again < 3; again++) follower.ends(crashed);
    await rest(2_000);
    follower.unreachable.clear();
    await expect
      .poll(() => follower.reported)
      .toEqual([...[`return to ${down}`, `end of ${crashed}`]]);
  });

  test('a container that ends while Docker shuts down causes only the return notification', async ({
    expect,
  }) => {
    const follower = following();
    const agent = await follower.agent('agent');
    follower.running.add(agent);
    follower.connects();
    follower.isDockerAway = true;
    follower.ends(agent);
    await rest(1_000);
    follower.loses();
    follower.isDockerAway = false;
    follower.running.clear();
    follower.connects(1_000_000);
    await expect.poll(() => follower.reported).toEqual([`return to ${agent}`]);
    await rest(1_000);
    expect(follower.reported).toHaveLength(1);
  });

  test("an end within Docker's absence is not sent, even if its agent runs again", async ({
    expect,
  }) => {
    const follower = following();
    const [back, other] = [await follower.agent('back'), await follower.agent('other')];
    follower.running.add(back).add(other);
    follower.connects();
    await expect.poll(() => follower.isReported).toBe(true);
    follower.loses();
    follower.connects(Date.now());
    // Docker reports, with its return, the ends of the containers that it found dead.
    follower.ends(back, Date.now() - 1_000);
    await rest(100);
    follower.ends(other);
    await expect.poll(() => follower.reported).toEqual([`end of ${other}`]);
  });

  test("Docker's outage counts from its first loss if it is lost again before all are notified", async ({
    expect,
  }) => {
    const follower = following();
    await follower.agent('agent');
    follower.unreachable.add('*');
    follower.connects(1_000_000);
    await expect.poll(() => follower.attempts).toBeGreaterThan(0);
    follower.loses();
    follower.connects(2_000_000);
    follower.unreachable.clear();
    await expect.poll(() => follower.returns).toEqual([970_000]);
  });

  test('notifies agents in a crash loop since Docker was lost, but not those in one before', async ({
    expect,
  }) => {
    const follower = following();
    const before = await follower.agent('before', crashLoop(900_000));
    const since = await follower.agent('since', crashLoop(980_000));
    follower.connects(1_000_000);
    await expect.poll(() => follower.reported).toEqual([`return to ${since}`]);
    expect(before).not.toBe(since);
  });
});
