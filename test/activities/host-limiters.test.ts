import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createContainerActivities } from '../../activities/containers.js';
import { createHeartbeatActivities } from '../../activities/heartbeats.js';
import { createReleaseActivities } from '../../activities/releases.js';
import { createStartActivities } from '../../activities/starts.js';
import { createWatchdogActivities } from '../../activities/watchdog.js';
import type { AgentRef } from '../../src/types/agent-ref.js';
import { hostLimiters } from '../../src/agents/watchdog/host-limiters.js';
import { StartProgress } from '../../src/agents/watchdog/start-progress.js';
import { freePort } from '../../dev/ports.js';
import { Gate } from '../workflows/support/gate.js';

type Dependencies = Parameters<typeof createReleaseActivities>[0];

/** Milliseconds for a step that nothing blocks: less than the time for which a hanging start keeps its slot. */
const SOON_MS = 4_000;

/** Failures are what is tested. */
const QUIET = new DefaultLogger('ERROR', () => undefined);

let host: Host;
beforeEach(async () => {
  host = await Host.open();
});
afterEach(() => host.close());

/** A host with the real activities on an engine that hangs for one owner's agents. */
class Host {
  readonly #gate = new Gate();
  /** Agents whose containers were started, in that order. */
  readonly started: string[] = [];
  /** For how long containers have run, without doing anything. */
  runningMs = 0;
  readonly #environments: MockActivityEnvironment[] = [];
  readonly #inFlight = new Set<Promise<unknown>>();
  readonly activities;

  readonly #answering: Server;

  private constructor(answering: Server, readyPort: number, deadPort: number) {
    this.#answering = answering;

    const hangs = (agentId: string) => agentId.startsWith('hanging');
    const call = async (agentId: string) => {
      if (hangs(agentId)) await this.#hang();
    };
    const idle = { cpuMs: 0, bytes: 0 };
    // The parts that the steps use.
    const docker = {
      containers: {
        start: (agentId: string) => Promise.resolve(this.started.push(agentId)),
        stop: call,
        kill: call,
        work: () => Promise.resolve(idle),
        inspect: () =>
          Promise.resolve({ id: 'c', status: 'running', startedAt: this.#startedAt() }),
      },
      images: {
        find: (image: string) =>
          Promise.resolve(image === 'here' ? { version: undefined } : undefined),
        ensure: () => this.#hang(),
      },
      volumes: {
        copy: ({ agentId }: AgentRef) => call(agentId),
        findOwn: () => Promise.resolve(),
        remove: () => Promise.resolve([]),
        require: () => Promise.resolve(),
      },
    };
    const specs = {
      skillsOf: () => Promise.resolve({}),
      gatewayOf: ({ agentId }: AgentRef) =>
        Promise.resolve({
          port: hangs(agentId) ? deadPort : readyPort,
          gatewayToken: 'token',
          hasChannels: false,
        }),
      imageOf: ({ agentId }: AgentRef) => Promise.resolve(hangs(agentId) ? 'elsewhere' : 'here'),
      memoryOf: (agent: AgentRef) => Promise.resolve(agent),
      recordImage: () => Promise.resolve(),
      specOf: (agent: AgentRef) => Promise.resolve(agent),
    };
    const volumes = { name: () => Promise.resolve(), of: () => Promise.resolve([]) };
    const clones = {
      isToBeCopied: () => Promise.resolve(false),
      originalOf: () => Promise.resolve({}),
      recordCopied: () => Promise.resolve(),
    };
    const releases = { replacementOf: () => Promise.resolve({ volume: 'new', copyOf: 'old' }) };
    const dependencies = {
      docker,
      clones,
      specs,
      releases,
      volumes,
      memorySizes: { requireRoom: () => Promise.resolve() },
      limiters: hostLimiters(4),
      checkIntervalMs: 1,
      degradedCheckIntervalMs: 1,
      progress: new StartProgress(docker.containers),
    } as unknown as Dependencies & Parameters<typeof createWatchdogActivities>[0];
    const sender = {
      send: async ({ agentId }: AgentRef) => {
        await call(agentId);
        return 'answered' as const;
      },
    };
    this.activities = {
      ...createContainerActivities(dependencies),
      ...createReleaseActivities(dependencies),
      ...createStartActivities(dependencies),
      ...createWatchdogActivities(dependencies),
      ...createHeartbeatActivities(sender, dependencies.limiters),
    };
  }

  static async open(): Promise<Host> {
    const server = createServer((_, response) =>
      response.setHeader('content-type', 'application/json').end('{"ready":true}'),
    );
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as { port: number }; // TCP: never a string
    return new Host(server, port, await freePort());
  }

  /** Runs one attempt at a step as the worker does. */
  run(step: keyof Host['activities'], agent: AgentRef, isAsked = false): Promise<unknown> {
    const priority = { priorityKey: isAsked ? 2 : 3 };
    const environment = new MockActivityEnvironment({ priority }, { logger: QUIET });
    this.#environments.push(environment);
    // Each step uses a part of these.
    const work = this.activities[step] as (...args: unknown[]) => Promise<unknown>;
    const running = environment.run(work, agent, 'operation', 'x');
    this.#inFlight.add(running);
    running.catch(() => undefined).finally(() => this.#inFlight.delete(running));
    return running;
  }

  async close(): Promise<void> {
    for (const environment of this.#environments) environment.cancel();
    this.#gate.open();
    await Promise.allSettled(this.#inFlight);
    this.#answering.close();
  }

  #startedAt(): string {
    return new Date(Date.now() - this.runningMs).toISOString();
  }

  async #hang(): Promise<never> {
    await this.#gate.opened;
    throw new Error('it hung');
  }
}

const agentOf = (userId: string, agentId: string): AgentRef => ({ userId, agentId, host: 'host' });
const forty = Array.from({ length: 40 }, (_, index) => agentOf('one', `hanging-${index}`));

test.each([
  'stopContainer',
  'killGateway',
  'ensureImage',
  'makeVolume',
  'startContainer',
  'sendHeartbeat',
] as const)(
  "forty of one owner's agents that hang in %s delay no step of other owners",
  { tags: 'attack' },
  async (step) => {
    for (const agent of forty) void host.run(step, agent, true);
    await delay(50);
    const other = agentOf('other', 'well');
    const began = performance.now();
    for (const each of ['stopContainer', 'killGateway', 'ensureImage', 'makeVolume'] as const) {
      await host.run(each, other);
    }
    await host.run('startContainer', other);
    await host.run('sendHeartbeat', other);
    expect(performance.now() - began).toBeLessThan(SOON_MS);
  },
);

test.each([
  'ensureImage',
  'copyMemory',
  'makeVolume',
  'startContainer',
  'awaitReady',
  'sendHeartbeat',
] as const)(
  'as many agents as there are turns, each of another owner, that hang in %s hold up no stop and no repair',
  { tags: 'attack' },
  async (step) => {
    for (const { agentId } of forty) void host.run(step, agentOf(`of-${agentId}`, agentId), true);
    await delay(50);
    const other = agentOf('other', 'well');
    const began = performance.now();
    await host.run('stopContainer', other);
    await host.run('killGateway', other);
    expect(performance.now() - began).toBeLessThan(SOON_MS);
  },
);

test.each(['startContainer', 'startExisting'] as const)(
  'no more agents start at a time than the host allows; a start without activity frees its place: %s',
  async (step) => {
    for (let index = 0; index < 6; index++) {
      void host.run(step, agentOf(`owner-${index}`, `hanging-${index}`));
    }
    await delay(200);
    expect(host.started).toHaveLength(4);
    host.runningMs = 10_000;
    await expect.poll(() => host.started.length).toBe(6);
  },
);

test('runs requested operations before work of the platform', async () => {
  for (let index = 0; index < 4; index++) {
    void host.run('startContainer', agentOf(`first-${index}`, `hanging-${index}`));
  }
  await expect.poll(() => host.started.length).toBe(4);
  const own = host.run('startContainer', agentOf('own', 'own'));
  const asked = host.run('startContainer', agentOf('asker', 'asked'), true);
  await delay(50);
  expect(host.started).toHaveLength(4);
  host.runningMs = 10_000;
  await Promise.all([own, asked]);
  expect(host.started.slice(4)).toEqual(['asked', 'own']);
});

test('a start that is cancelled while it waits never happens', async () => {
  for (let index = 0; index < 4; index++) {
    void host.run('startContainer', agentOf(`first-${index}`, `hanging-${index}`));
  }
  await expect.poll(() => host.started.length).toBe(4);
  const waiting = host.run('startContainer', agentOf('late', 'late'));
  await host.close();
  await expect(waiting).rejects.toThrow();
  expect(host.started).not.toContain('late');
});
