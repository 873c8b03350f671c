import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { hostLimiters } from '../../../src/agents/watchdog/host-limiters.js';
import {
  DockerRefusedError,
  DockerUnavailableError,
} from '../../../src/docker/containers/container-errors.js';
import type { ContainerDeath } from '../../../src/docker/containers/death-cause.js';
import type { DockerAbsence } from '../../../src/agents/watchdog/docker-absence.js';
import { HostJournal } from '../../../src/agents/local-repair/host-journal.js';
import type { JournalEntry } from '../../../src/agents/local-repair/journal-entry.js';
import {
  LocalWatchdog,
  NotLocallyRepairableError,
  type LocalWatchdogDependencies,
} from '../../../src/agents/local-repair/local-watchdog.js';
import { keptLog } from '../../support/platform-environment.js';
import { until } from '../../support/until.js';
import { Gate } from '../../workflows/support/gate.js';
import { ScriptedContainer, ScriptedGateway } from './scripted-container.js';
import { WELL } from './well.js';

const SETTINGS = {
  autoRepair: true,
  maxRepairAttempts: 2,
  degradedCheckIntervalMs: 5,
  startupFailureThreshold: 3,
  crashLoopWindowMs: 300_000,
  crashLoopThreshold: 3,
};
const TIMES = { pause: 50, grace: 100 };
const { log } = keptLog();

const gateway = new ScriptedGateway();
let folder: string;
let journal: HostJournal;

beforeAll(() => gateway.listen());
afterAll(() => gateway.close());
beforeEach(async () => {
  gateway.answers = [200];
  folder = await mkdtemp(path.join(tmpdir(), 'aps-local-watchdog-'));
  journal = await HostJournal.open(folder, log);
});
afterEach(() => rm(folder, { recursive: true, force: true }));

interface Scene {
  readonly entry?: Partial<JournalEntry>;
  readonly absences?: readonly DockerAbsence[];
  readonly received?: ContainerDeath;
  readonly given?: Partial<LocalWatchdogDependencies>;
  readonly signal?: AbortSignal;
}

/** Attends to the agent and returns its journal entry with the changes. */
async function attend(
  container: ScriptedContainer,
  {
    absences = [],
    entry = {},
    given = {},
    received,
    signal = new AbortController().signal,
  }: Scene = {},
) {
  const known: JournalEntry = {
    agentId: 'one',
    userId: 'user',
    containerId: 'container',
    volumes: [],
    phase: 'running',
    memory: WELL,
    past: [],
    ...entry,
  };
  await journal.set(known);
  const dependencies = {
    docker: { containers: container, volumes: { exists: () => Promise.resolve(true) } },
    journal,
    log,
    settings: SETTINGS,
    times: TIMES,
    limiters: hostLimiters(1),
    progress: { isStarting: () => Promise.resolve(false) },
    ...given,
  } as unknown as LocalWatchdogDependencies;
  const isWell = await new LocalWatchdog(dependencies, known, signal).attend(absences, received);
  const now = journal.get('one');
  if (!now) throw new Error('journal entry missing');
  return {
    ...now,
    isWell,
    changes: now.past.map((made) => `${made.memory.state} (${made.cause})`),
  };
}

const REPAIRED = ['degraded (kill)', 'repairing (kill)', 'running (repaired)'];
const REPAIRING = { ...WELL, state: 'repairing', repairAttempts: 1, lastRepair: 1 } as const;

describe('agent with an ended container', () => {
  test('kills, pauses, starts and verifies an ended agent', async () => {
    const container = new ScriptedContainer(gateway);
    const endedAt = container.finishedAt;
    const phases: unknown[] = [];
    container.onKill = () => phases.push(journal.get('one')?.phase);
    const { changes, isWell, memory, past, phase } = await attend(container);
    expect(changes).toEqual(REPAIRED);
    expect([isWell, phase]).toEqual([true, 'running']);
    // Because the phase is recorded, another process can continue if this one dies.
    expect([container.did, phases]).toEqual([['kill', 'start'], ['killed']]);
    const [kill, start] = container.steps.map(({ at }) => at);
    expect((start ?? 0) - (kill ?? 0)).toBeGreaterThanOrEqual(TIMES.pause - 1);
    expect(memory.since - (start ?? 0)).toBeGreaterThanOrEqual(TIMES.grace - 1);
    // Dated by the end of the container, not by its detection.
    expect(past[0]?.memory.since).toBe(endedAt);
    expect(memory).toMatchObject({ repairAttempts: 1, crashes: [endedAt] });
  });

  test('does not repair an ended agent when repairs are switched off', async () => {
    const container = new ScriptedContainer(gateway);
    const settings = { ...SETTINGS, autoRepair: false };
    const { changes } = await attend(container, { given: { settings } });
    expect([changes, container.did]).toEqual([[], []]);
  });

  test('leaves an agent down after the third crash within the window', async () => {
    const container = new ScriptedContainer(gateway);
    const crashes = [container.finishedAt - 200_000, container.finishedAt - 100_000];
    const looping = await attend(container, { entry: { memory: { ...WELL, crashes } } });
    expect(looping.changes).toEqual(['degraded (kill)', 'crash_loop (kill)']);
    expect(container.did).toEqual([]);
    expect(looping.memory.crashes).toEqual([...crashes, container.finishedAt]);
  });

  test('stops repairing after the maximum of attempts when each start fails', async () => {
    const container = new ScriptedContainer(gateway);
    container.onStart = () => container.end();
    const { changes, memory } = await attend(container);
    expect(changes).toEqual(['degraded (kill)', 'repairing (kill)', 'crash_loop (repair_failed)']);
    expect(container.did).toEqual(['kill', 'start', 'kill', 'start']);
    expect(memory.repairAttempts).toBe(2);
    // The crash itself and two failed starts.
    expect(memory.crashes).toHaveLength(3);
  });

  test('uses the cause of a Docker event only if the event is about the same end', async () => {
    const container = new ScriptedContainer(gateway);
    const death = { agentId: 'one', userId: 'user', containerId: 'container', exitCode: 137 };
    const received = (at: number) => ({ ...death, cause: 'stop', at }) as const;
    const near = await attend(container, { received: received(container.finishedAt + 1_000) });
    expect(near.changes[0]).toBe('degraded (stop)');
    const far = new ScriptedContainer(gateway);
    expect((await attend(far, { received: received(far.finishedAt - 60_000) })).changes[0]).toBe(
      'degraded (kill)',
    );
    const another = new ScriptedContainer(gateway);
    const of = { ...received(another.finishedAt), containerId: 'another one' };
    expect((await attend(another, { received: of })).changes[0]).toBe('degraded (kill)');
    const out = Object.assign(new ScriptedContainer(gateway), { oomKilled: true });
    expect((await attend(out, { received: received(out.finishedAt) })).changes[0]).toBe(
      'degraded (oom)',
    );
    const early = new ScriptedContainer(gateway);
    const { past } = await attend(early, {
      received: { ...received(early.finishedAt), cause: 'oom' },
    });
    expect(past[0]).toMatchObject({
      cause: 'oom',
      reason: 'The container ran out of memory',
      crash: { exitCode: 137, oomKilled: true },
    });
  });

  test('does not start an agent whose container was replaced while it waited for its turn', async () => {
    const container = new ScriptedContainer(gateway);
    const limiters = hostLimiters(1);
    const gate = new Gate();
    const before = limiters.starts.run({ owner: 'other', isUrgent: true }, gate.pass);
    const attending = attend(container, { given: { limiters } });
    const refused = expect(attending).rejects.toThrow(NotLocallyRepairableError);
    await until(() => limiters.starts.state.waiting === 1);
    container.id = 'another one';
    gate.open();
    await Promise.all([before, refused]);
    expect(container.did).toEqual(['kill']);
  });

  test('leaves an agent to its supervisor only if its container must be recreated', async () => {
    const startedWith = (error: Error) => {
      const container = new ScriptedContainer(gateway);
      container.onStart = () => {
        throw error;
      };
      return attend(container);
    };
    await expect(startedWith(new DockerRefusedError(500, 'no'))).rejects.toThrow(
      NotLocallyRepairableError,
    );
    await expect(startedWith(new DockerUnavailableError('away'))).rejects.toThrow('away');
    const dead = Object.assign(new ScriptedContainer(gateway), { status: 'dead' });
    await expect(attend(dead)).rejects.toThrow(NotLocallyRepairableError);
    expect(dead.did).toEqual([]);
  });

  test('neither touches nor records an agent after an abort', async () => {
    const container = new ScriptedContainer(gateway);
    const signal = AbortSignal.abort();
    await expect(attend(container, { signal })).rejects.toMatchObject({ name: 'AbortError' });
    expect([journal.get('one')?.past, container.did]).toEqual([[], []]);
  });
});

describe('repair interrupted by the death of a process', () => {
  test('does not count a crash again that the dead process counted', async () => {
    const container = new ScriptedContainer(gateway);
    const at = container.finishedAt;
    const degraded = { ...WELL, state: 'degraded', since: at, crashes: [at] } as const;
    const { changes, memory } = await attend(container, { entry: { memory: degraded } });
    expect(changes).toEqual(['repairing (kill)', 'running (repaired)']);
    expect(memory.crashes).toEqual([at]);
  });

  test('starts an agent killed by the dead process in the same attempt', async () => {
    const container = new ScriptedContainer(gateway);
    const entry = { phase: 'killed', memory: REPAIRING } as const;
    const { changes, memory } = await attend(container, { entry });
    expect(changes).toEqual(['running (repaired)']);
    expect(memory).toMatchObject({ repairAttempts: 1, crashes: [] });
  });

  test('an agent that ended after the dead process had started it counts as a failed attempt', async () => {
    const container = new ScriptedContainer(gateway);
    const entry = { phase: 'started', memory: REPAIRING } as const;
    const { changes, memory } = await attend(container, { entry });
    expect(changes).toEqual(['running (repaired)']);
    expect(memory.repairAttempts).toBe(2);
    expect(memory.crashes).toHaveLength(1);
  });
});

describe('agent that ended during a Docker outage', () => {
  const away = (container: ScriptedContainer) => ({
    from: container.finishedAt - 10_000,
    until: container.finishedAt + 10_000,
  });

  test('starts an agent that ended during a Docker outage and discards its crashes since then', async () => {
    const container = new ScriptedContainer(gateway);
    const absence = away(container);
    const crashes = [absence.from - 1_000, absence.from + 1_000];
    const entry = { phase: 'killed', memory: { ...WELL, crashes } } as const;
    const { changes, memory, phase } = await attend(container, { entry, absences: [absence] });
    expect(changes).toEqual(['starting (host_returned)', 'running (healthy)']);
    expect([memory.crashes, container.did, phase]).toEqual([
      [absence.from - 1_000],
      ['start'],
      'running',
    ]);
  });

  test('records one start, however often it is tried', async () => {
    const container = new ScriptedContainer(gateway);
    const starting = { ...WELL, state: 'starting', since: Date.now() } as const;
    const scene = { entry: { memory: starting }, absences: [away(container)] };
    expect((await attend(container, scene)).changes).toEqual(['running (healthy)']);
  });

  test('counts a crash when the start fails, and repairs the agent unless repairs are off', async () => {
    const scene = (container: ScriptedContainer) => ({ absences: [away(container)] });
    gateway.answers = [503, 503, 200];
    const container = new ScriptedContainer(gateway);
    const { changes } = await attend(container, scene(container));
    expect(changes).toEqual([
      'starting (host_returned)',
      'degraded (start_failed)',
      'repairing (start_failed)',
      'running (repaired)',
    ]);
    gateway.answers = [503];
    const left = new ScriptedContainer(gateway);
    const settings = { ...SETTINGS, autoRepair: false };
    const seen = await attend(left, { ...scene(left), given: { settings } });
    expect(seen.changes).toEqual(['starting (host_returned)', 'degraded (start_failed)']);
    expect(left.did).toEqual(['start']);
  });
});

describe('unresponsive agent', () => {
  test('probes an unresponsive agent once more before it acts', async () => {
    gateway.answers = [503, 200];
    const container = Object.assign(new ScriptedContainer(gateway), { status: 'running' });
    const { changes, isWell } = await attend(container);
    expect([changes, container.did, isWell]).toEqual([[], [], true]);
  });

  test('probes a restarted agent as often as its start may fail', async () => {
    gateway.answers = [503, 503, 503, 503, 200];
    const container = Object.assign(new ScriptedContainer(gateway), { status: 'running' });
    const { changes, memory } = await attend(container);
    expect(changes).toEqual([
      'degraded (unhealthy)',
      'repairing (unhealthy)',
      'running (repaired)',
    ]);
    expect(memory).toMatchObject({ repairAttempts: 1, crashes: [] });
  });
});
