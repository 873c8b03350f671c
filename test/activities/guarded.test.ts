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
    ...{ agentId: 'one', userId: 'user', containerId: 'container', volumes: [] },
    ...{ phase: 'running', memory: WELL, past },
  });

/** A supervisor's way to look, when this is what there is to be seen. */
function eyes(look: () => Promise<Observation>) {
  // As much of them as looks ask for.
  const watchdog = { watchHealth: look, observeAgent: look } as unknown as WatchdogActivities;
  const found = { id: 'container', volumes: [] };
  const containers = { inspect: () => Promise.resolve(found) } as unknown as AgentContainers;
  return guardWatchdog(guard, containers, watchdog);
}

const seen: Observation = { health: 'unhealthy', reason: null, observedAt: 'now' };

describe('a look at an agent', () => {
  test('sees nothing while the host repairs it by itself', async () => {
    const gate = new Gate();
    let looks = 0;
    const repairing = guard.locally('one', () => gate.pass());
    const look = eyes(() => Promise.resolve({ ...seen, looks: ++looks })).observeAgent(AGENT);
    await expect(look).rejects.toThrow(ApplicationFailure);
    expect(looks).toBe(0);
    gate.open();
    await repairing;
  });

  test('does not believe what it sees of a repair that has begun meanwhile', async () => {
    const gate = new Gate();
    let repairing: Promise<unknown> = Promise.resolve();
    const look = eyes(() => {
      repairing = guard.locally('one', () => gate.pass());
      return Promise.resolve(seen);
    }).observeAgent(AGENT);
    await expect(look).rejects.toThrow(ApplicationFailure);
    gate.open();
    await repairing;
  });

  test('tells what was done here, also where that came while it looked', async () => {
    await known();
    const { observeAgent } = eyes(async () => {
      await known([CHANGE]);
      return seen;
    });
    expect(await observeAgent(AGENT)).toMatchObject({ health: 'starting', past: [CHANGE] });
    expect(await observeAgent(AGENT, CHANGE.id)).toMatchObject({ health: 'unhealthy' });
  });
});

describe('a host learns that an agent should run', () => {
  const watch = (state: 'running' | 'starting') => {
    const watching = { memory: { ...WELL, state }, lastApplied: undefined };
    const isWell = () => Promise.reject(unchanged(1));
    return eyes(isWell).watchHealth(AGENT, 'healthy', watching);
  };

  test('from a supervisor that watches one that runs, and is well', async () => {
    await expect(watch('running')).rejects.toThrow(ApplicationFailure);
    expect(journal.get('one')).toMatchObject({ phase: 'running', containerId: 'container' });
  });

  test('from no other', async () => {
    await expect(watch('starting')).rejects.toThrow(ApplicationFailure);
    expect(journal.get('one')).toBeUndefined();
  });
});

/** Steps that change nothing of what the host may repair. */
const HARMLESS = [
  ...['ensureImage', 'findImage', 'takenPlaces', 'requireVolume', 'awaitReady'],
  ...['removeLeftovers', 'startExisting'],
];
// As much of it as is looked at before a step is asked for.
const nothing = { limiters: hostLimiters(1) } as Parameters<typeof createReleaseActivities>[0] &
  Parameters<typeof createStartActivities>[0];

test.each(
  Object.keys({
    ...createContainerActivities(nothing),
    ...createReleaseActivities(nothing),
    ...createStartActivities(nothing),
  }),
)('a host leaves an agent alone from %s on, unless that is harmless', async (name) => {
  await known();
  const phases: unknown[] = [];
  const step = (_: typeof AGENT) => Promise.resolve(phases.push(journal.get('one')?.phase));
  const steps = guardSteps(guard, { [name]: step });
  await new MockActivityEnvironment({}, QUIET).run(() => (steps[name] ?? step)(AGENT));
  expect(phases).toEqual([HARMLESS.includes(name) ? 'running' : 'held']);
});

test.each(['removeVolume', 'undoVolume'])('it forgets the agent with %s', async (name) => {
  await known();
  const done = (_: typeof AGENT) => Promise.resolve();
  const steps = guardSteps(guard, { [name]: done, stopContainer: done });
  const run = (step: string) =>
    new MockActivityEnvironment({}, QUIET).run(() => (steps[step] ?? done)(AGENT));
  await run('stopContainer');
  expect(journal.get('one')).toMatchObject({ phase: 'held' });
  await run(name);
  expect(journal.get('one')).toBeUndefined();
});
