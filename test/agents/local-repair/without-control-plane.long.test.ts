import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  containerName,
  type AgentContainerSpec,
} from '../../../src/docker/containers/container-spec.js';
import type { DockerHost } from '../../../src/docker/containers/docker-host.js';
import { Database } from '../../../src/platform/database/database.js';
import type { JournalEntry } from '../../../src/agents/local-repair/journal-entry.js';
import { HostJournal } from '../../../src/agents/local-repair/host-journal.js';
import { openLocalRepair, type LocalRepairParts } from '../../../worker/local-repair.js';
import { loadSettings } from '../../../src/settings.js';
import { ensureTestImage } from '../../agent-image/ensure-test-image.js';
import { testDocker, type TestDocker } from '../../support/docker.js';
import { until } from '../../support/until.js';
import { keptLog, testEnvironment } from '../../support/platform-environment.js';
import { runInContainer } from '../../support/run-in-container.js';
import { WELL } from './well.js';

/** A port without a listener: neither Temporal nor PostgreSQL is reachable. */
const NOWHERE = 'postgres://nobody@127.0.0.1:1/nothing';
const TIMES = { probe: 200, away: 500, again: 500, notify: 15_000, pause: 300, grace: 500 };

let folder: string;
let own: TestDocker;
let stop: AbortController;
let running: Promise<void> = Promise.resolve();

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'aps-local-repair-'));
  own = testDocker();
  lines.length = 0;
  stop = new AbortController();
});
afterEach(async () => {
  stop.abort();
  await running;
  await own.close();
  await rm(folder, { recursive: true, force: true });
});

const { log, lines } = keptLog();
const journalFolder = () => path.join(folder, 'host-journal', 'local');

/** Creates an agent that ran well at its supervisor's last report. */
async function knownAgent(entry: Partial<JournalEntry> = {}): Promise<AgentContainerSpec> {
  const spec = await own.spec({ image: await ensureTestImage(own.docker) });
  await own.host.networks.ensure(spec);
  await own.host.volumes.ensure(spec, 'test');
  await own.containers.ensure(spec);
  await own.containers.start(spec.agentId);
  const container = await own.containers.inspect(spec.agentId);
  if (!container) throw new Error('container missing after its start');
  const { id: containerId, volumes } = container;
  const { agentId, userId } = spec;
  const journal = await HostJournal.open(journalFolder(), log);
  const known = { agentId, userId, containerId, volumes, phase: 'running', memory: WELL, past: [] };
  await journal.set({ ...known, ...entry } as JournalEntry);
  await until(() => isUp(spec));
  return spec;
}

/** Returns the object with some members replaced. */
function replacing<T extends object>(original: T, given: Partial<T>): T {
  return new Proxy(original, {
    get(target, name) {
      if (name in given) return Reflect.get(given, name) as unknown;
      const own: unknown = Reflect.get(target, name, target);
      return typeof own === 'function' ? (own.bind(target) as unknown) : own;
    },
  });
}

/** Starts the local repair of a worker. */
async function begin({
  repairs = true,
  ...given
}: Partial<LocalRepairParts> & { readonly repairs?: boolean } = {}): Promise<void> {
  const database = new Database(NOWHERE);
  const env = testEnvironment({
    DATABASE_URL: NOWHERE,
    INTERNAL_API_KEY: randomUUID(),
    DATA_DIR: folder,
    WATCHDOG_CHECK_INTERVAL: '1s',
    WATCHDOG_AUTO_REPAIR: String(repairs),
    WATCHDOG_DEGRADED_CHECK_INTERVAL: '500ms',
  });
  const local = await openLocalRepair({
    settings: loadSettings(env),
    database,
    docker: own.host,
    log,
    atHand: { connected: undefined },
    times: TIMES,
    ...given,
  });
  running = local.run(stop.signal).then(() => database.close());
}

const isUp = async ({ agentId, port }: AgentContainerSpec) => {
  const state = await own.containers.inspect(agentId);
  if (state?.status !== 'running') return false;
  return (await fetch(`http://127.0.0.1:${port}/healthz`).catch(() => undefined))?.ok === true;
};

/** Reads an agent's journal entry as another process would. */
async function journaled(agentId: string): Promise<JournalEntry | undefined> {
  return (await HostJournal.open(journalFolder(), log)).get(agentId);
}

const changesOf = (entry: JournalEntry | undefined) =>
  entry?.past.map(({ from, cause, memory: { state } }) => `${from} > ${state} (${cause})`);

test('restarts a killed container while Temporal and PostgreSQL are unavailable', async () => {
  const agent = await knownAgent();
  await begin();
  const { Id: id } = await own.docker.getContainer(containerName(agent.agentId)).inspect();
  const isReceived = () =>
    lines.some((line) => line.includes('local repair receives Docker events'));
  await until(() => Promise.resolve(isReceived()));
  const killedAt = Date.now();
  await own.docker.getContainer(id).kill();
  await until(() => isUp(agent));
  const entry = await until(async () => {
    const now = await journaled(agent.agentId);
    return now?.memory.state === 'running' && now;
  });
  expect(changesOf(entry)).toEqual([
    'running > degraded (kill)',
    'degraded > repairing (kill)',
    'repairing > running (repaired)',
  ]);
  expect(entry.memory.crashes).toHaveLength(1);
  expect(Math.abs((entry.memory.crashes[0] ?? 0) - killedAt)).toBeLessThan(30_000);
  expect(entry.past[0]?.crash).toEqual({ exitCode: 137, oomKilled: false });
  expect((await own.containers.inspect(agent.agentId))?.id).toBe(id);
});

test('restarts a container that ended with the machine, without counting a crash', async () => {
  const agent = await knownAgent();
  await own.docker.getContainer(containerName(agent.agentId)).kill();
  await begin();
  await until(() => isUp(agent));
  const entry = await until(async () => {
    const now = await journaled(agent.agentId);
    return now?.memory.state === 'running' && now.past.length > 0 && now;
  });
  expect(changesOf(entry)).toEqual([
    'running > starting (host_returned)',
    'starting > running (healthy)',
  ]);
  expect(entry.memory.crashes).toEqual([]);
});

test('leaves agents down that are stopped, being changed, in a crash loop or replaced', async () => {
  const held = await knownAgent({ phase: 'held' });
  const looping = await knownAgent({ memory: { ...WELL, state: 'crash_loop' } });
  const other = await knownAgent({ containerId: 'another one' });
  const forgetful = await knownAgent({ volumes: ['a-volume-that-is-gone'] });
  const known = await knownAgent();
  for (const { agentId } of [held, looping, other, forgetful, known]) {
    await own.docker.getContainer(containerName(agentId)).kill();
  }
  let checks = 0;
  const inspect = (agentId: string) => {
    if (agentId === known.agentId) checks += 1;
    return own.containers.inspect(agentId);
  };
  const docker = replacing(own.host, { containers: replacing(own.containers, { inspect }) });
  await begin({ docker });
  await until(() => isUp(known));
  // Repeated checks of the known agent would also have restarted the others.
  const seen = checks;
  await until(() => Promise.resolve(checks > seen + 2));
  for (const { agentId } of [held, looping, other, forgetful]) {
    expect((await own.containers.inspect(agentId))?.status).toBe('exited');
  }
});

test('restarts a killed container while only PostgreSQL is unavailable', async () => {
  const agent = await knownAgent();
  const answering = {
    // Only the parts that the local repair uses.
    connection: {
      withDeadline: (_: number, work: () => Promise<unknown>) => work(),
      workflowService: { describeNamespace: () => Promise.resolve({}) },
    },
    namespace: 'default',
    supervisors: { checkNow: () => Promise.resolve() },
  } as unknown as LocalRepairParts['atHand']['connected'];
  await begin({ atHand: { connected: answering } });
  await own.docker.getContainer(containerName(agent.agentId)).kill();
  await until(() => isUp(agent));
  const entry = await until(async () => {
    const now = await journaled(agent.agentId);
    return now?.memory.state === 'running' && now.past.length > 0 && now;
  });
  expect(changesOf(entry)?.at(-1)).toMatch(/> running/);
});

test('repairs nothing until the database confirms the identity of the host', async () => {
  const agent = await knownAgent();
  await own.docker.getContainer(containerName(agent.agentId)).kill();
  let [isOurs, asked] = [false, 0];
  const mayAct = () => {
    asked += 1;
    return isOurs;
  };
  await begin({ mayAct });
  await until(() => Promise.resolve(asked > 3));
  expect((await own.containers.inspect(agent.agentId))?.status).toBe('exited');
  isOurs = true;
  await until(() => isUp(agent));
});

describe('unresponsive agent in a running container', () => {
  /** Returns Docker with containers dated an hour back, past their minute to start. */
  function longRunning(): DockerHost {
    const before = new Date().toISOString();
    const anHourAgo = new Date(Date.now() - 60 * 60_000).toISOString();
    const inspect = async (agentId: string) => {
      const state = await own.containers.inspect(agentId);
      const isOld = state?.startedAt !== undefined && state.startedAt < before;
      return isOld ? { ...state, startedAt: anHourAgo } : state;
    };
    return replacing(own.host, { containers: replacing(own.containers, { inspect }) });
  }

  /** Suspends all processes of the agent, which Docker still reports as running. */
  const standStill = ({ agentId }: AgentContainerSpec) =>
    runInContainer(own.docker, containerName(agentId), 'process.kill(-1, "SIGSTOP")');
  const paused = ({ agentId }: AgentContainerSpec) =>
    own.docker.getContainer(containerName(agentId)).pause();

  const isRepaired = async ({ agentId }: AgentContainerSpec) => {
    const now = await journaled(agentId);
    return now?.memory.state === 'running' && now.past.length > 0 && now;
  };

  test('restarts a hanging agent without counting a crash, even after a change of worker', async () => {
    const standing = await knownAgent();
    const resting = await knownAgent();
    const repairing = { ...WELL, state: 'repairing', repairAttempts: 1, lastRepair: 1 } as const;
    // The previous worker died during the repair.
    const left = await knownAgent({ phase: 'killed', memory: repairing });
    const recovered = await knownAgent({
      phase: 'killed',
      memory: repairing,
      past: [{ id: '1', from: 'degraded', cause: 'unhealthy', reason: null, memory: repairing }],
    });
    await begin({ docker: longRunning() });
    await Promise.all([standStill(standing), paused(resting), paused(left)]);

    for (const agent of [standing, resting]) {
      const entry = await until(() => isRepaired(agent));
      expect(changesOf(entry)).toEqual([
        'running > degraded (unhealthy)',
        'degraded > repairing (unhealthy)',
        'repairing > running (repaired)',
      ]);
      expect(entry.memory.crashes).toEqual([]);
      expect(await isUp(agent)).toBe(true);
    }
    const entry = await until(() => isRepaired(left));
    expect(changesOf(entry)).toEqual(['repairing > running (repaired)']);
    expect(entry.memory.repairAttempts).toBe(1);
    // The agent answered before it was killed.
    const { past } = await until(() => isRepaired(recovered));
    expect(past.at(-1)).toMatchObject({ from: 'repairing', cause: 'healthy' });
  });

  test('restarts no hanging agent when repairs are off, and never a responsive agent', async () => {
    const hanging = await knownAgent();
    const well = await knownAgent();
    const startOf = async (agent: AgentContainerSpec) =>
      (await own.containers.inspect(agent.agentId))?.startedAt;
    const before = await startOf(well);
    await paused(hanging);
    const checks = new Map<string, number>();
    const docker = longRunning();
    const inspect = (agentId: string) => {
      checks.set(agentId, (checks.get(agentId) ?? 0) + 1);
      return docker.containers.inspect(agentId);
    };
    await begin({
      docker: replacing(docker, { containers: replacing(docker.containers, { inspect }) }),
      repairs: false,
    });
    const isSeen = () => [hanging, well].every(({ agentId }) => (checks.get(agentId) ?? 0) >= 3);
    await until(() => Promise.resolve(isSeen()));
    expect((await own.containers.inspect(hanging.agentId))?.status).toBe('paused');
    expect(await startOf(well)).toBe(before);
    expect(changesOf(await journaled(well.agentId))).toEqual([]);
  });
});
