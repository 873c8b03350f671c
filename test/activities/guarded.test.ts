import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { ApplicationFailure } from '@temporalio/common';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createContainerActivities } from '../../activities/containers.js';
import { guardSteps, guardWatchdog } from '../../activities/guarded.js';
import { createReleaseActivities } from '../../activities/releases.js';
import { createStartActivities } from '../../activities/starts.js';
import { unchanged, type WatchdogActivities } from '../../activities/watchdog.js';
import { hostLimiters } from '../../src/agents/watchdog/host-limiters.js';
import type { Observation } from '../../src/agents/watchdog/observation.js';
import type { AgentContainers } from '../../src/docker/containers/agent-containers.js';
import { AgentGuard } from '../../src/agents/local-repair/agent-guard.js';
import { HostJournal } from '../../src/agents/local-repair/host-journal.js';
import { WELL } from '../agents/local-repair/well.js';
import { keptLog } from '../support/platform-environment.js';
import { Gate } from '../workflows/support/gate.js';

const AGENT = { agentId: 'one', userId: 'user', host: 'local' };
const CHANGE = { id: '1', from: 'running', cause: 'kill', reason: null, memory: WELL } as const;
const QUIET = { logger: new DefaultLogger('ERROR', () => undefined) };

let folder: string;
let journal: HostJournal;
let guard: AgentGuard;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'aps-guarded-'));
  journal = await HostJournal.open(folder, keptLog().log);
  guard = new AgentGuard(journal);
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const known = (past: readonly (typeof CHANGE)[] = []) =>
  journal.set({
    agentId: 'one',
    userId: 'user',
    containerId: 'container',
    volumes: [],
    phase: 'running',
    memory: WELL,
    past,
  });

/** Returns the watchdog's guarded activities, which observe by `look`. */
function observer(observe: () => Promise<Observation>) {
  // Only the parts that an observation uses.
  const watchdog = { watchHealth: observe, observeAgent: observe } as unknown as WatchdogActivities;
  const found = { id: 'container', volumes: [] };
  const containers = { inspect: () => Promise.resolve(found) } as unknown as AgentContainers;
  return guardWatchdog(guard, containers, watchdog);
}

const seen: Observation = { health: 'unhealthy', reason: null, observedAt: 'now' };

describe('an observation of an agent', () => {
  test('an observation fails without contacting Docker while the host repairs the agent', async () => {
    const gate = new Gate();
    let observations = 0;
    const repairing = guard.locally('one', () => gate.pass());
    const observe = observer(() =>
      Promise.resolve({ ...seen, observations: ++observations }),
    ).observeAgent(AGENT);
    await expect(observe).rejects.toThrow(ApplicationFailure);
    expect(observations).toBe(0);
    gate.open();
    await repairing;
  });

  test('an observation fails if the host begins a repair during it', async () => {
    const gate = new Gate();
    let repairing: Promise<unknown> = Promise.resolve();
    const observe = observer(() => {
      repairing = guard.locally('one', () => gate.pass());
      return Promise.resolve(seen);
    }).observeAgent(AGENT);
    await expect(observe).rejects.toThrow(ApplicationFailure);
    gate.open();
    await repairing;
  });

  test("an observation reports the host's own changes, also those made during it", async () => {
    await known();
    const { observeAgent } = observer(async () => {
      await known([CHANGE]);
      return seen;
    });
    expect(await observeAgent(AGENT)).toMatchObject({ health: 'starting', past: [CHANGE] });
    expect(await observeAgent(AGENT, CHANGE.id)).toMatchObject({ health: 'unhealthy' });
  });
});

describe("the host's journal entry of a running agent", () => {
  const watch = (state: 'running' | 'starting') => {
    const watching = { memory: { ...WELL, state }, lastApplied: undefined };
    const isWell = () => Promise.reject(unchanged(1));
    return observer(isWell).watchHealth(AGENT, 'healthy', watching);
  };

  test('the host records an agent as running when a supervisor watches it healthy', async () => {
    await expect(watch('running')).rejects.toThrow(ApplicationFailure);
    expect(journal.get('one')).toMatchObject({ phase: 'running', containerId: 'container' });
  });

  test('the host does not record an agent that is still starting', async () => {
    await expect(watch('starting')).rejects.toThrow(ApplicationFailure);
    expect(journal.get('one')).toBeUndefined();
  });
});

/** Steps that cannot conflict with a repair by the host. */
const HARMLESS = [
  ...['ensureImage', 'findImage', 'takenPlaces', 'requireVolume', 'awaitReady'],
  ...['removeLeftovers', 'startExisting'],
];
// Only the parts that are read before a step runs.
const nothing = { limiters: hostLimiters(1) } as Parameters<typeof createReleaseActivities>[0] &
  Parameters<typeof createStartActivities>[0];

test.each(
  Object.keys({
    ...createContainerActivities(nothing),
    ...createReleaseActivities(nothing),
    ...createStartActivities(nothing),
  }),
)(
  'the host stops repairing an agent from the step %s on, unless the step is harmless',
  async (name) => {
    await known();
    const phases: unknown[] = [];
    const step = (_: typeof AGENT) => Promise.resolve(phases.push(journal.get('one')?.phase));
    const steps = guardSteps(guard, { [name]: step });
    await new MockActivityEnvironment({}, QUIET).run(() => (steps[name] ?? step)(AGENT));
    expect(phases).toEqual([HARMLESS.includes(name) ? 'running' : 'held']);
  },
);

test.each(['removeVolume', 'undoVolume'])(
  'the host removes its record of the agent on %s',
  async (name) => {
    await known();
    const done = (_: typeof AGENT) => Promise.resolve();
    const steps = guardSteps(guard, { [name]: done, stopContainer: done });
    const run = (step: string) =>
      new MockActivityEnvironment({}, QUIET).run(() => (steps[step] ?? done)(AGENT));
    await run('stopContainer');
    expect(journal.get('one')).toMatchObject({ phase: 'held' });
    await run(name);
    expect(journal.get('one')).toBeUndefined();
  },
);
