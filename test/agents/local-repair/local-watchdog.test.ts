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
import type { DockerAbsence } from '../../../src/agents/local-repair/docker-absence.js';
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
  ...{ autoRepair: true, maxRepairAttempts: 2, degradedCheckIntervalMs: 5 },
  ...{ startupFailureThreshold: 3, crashLoopWindowMs: 300_000, crashLoopThreshold: 3 },
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
  readonly heard?: ContainerDeath;
  readonly given?: Partial<LocalWatchdogDependencies>;
  readonly signal?: AbortSignal;
}

/** Has the agent attended to; answers what the journal says of it then. */
async function attend(
  container: ScriptedContainer,
  {
    absences = [],
    entry = {},
    given = {},
    heard,
    signal = new AbortController().signal,
  }: Scene = {},
) {
  const known: JournalEntry = {
    ...{ agentId: 'one', userId: 'user', containerId: 'container', volumes: [] },
    ...{ phase: 'running', memory: WELL, past: [] },
    ...entry,
  };
  await journal.set(known);
  const dependencies = {
    docker: { containers: container, volumes: { exists: () => Promise.resolve(true) } },
    ...{ journal, log, settings: SETTINGS, times: TIMES, limiters: hostLimiters(1) },
    progress: { isStarting: () => Promise.resolve(false) },
    ...given,
  } as unknown as LocalWatchdogDependencies;
  const isWell = await new LocalWatchdog(dependencies, known, signal).attend(absences, heard);
  const now = journal.get('one');
  if (!now) throw new Error('it has just been put down');
  return {
    ...now,
    isWell,
    changes: now.past.map((made) => `${made.memory.state} (${made.cause})`),
  };
}

const REPAIRED = ['degraded (kill)', 'repairing (kill)', 'running (repaired)'];
const REPAIRING = { ...WELL, state: 'repairing', repairAttempts: 1, lastRepair: 1 } as const;

describe('an agent whose container has ended', () => {
  test('is killed, left in peace, started, given its grace and verified', async () => {
    const container = new ScriptedContainer(gateway);
    const endedAt = container.finishedAt;
    const phases: unknown[] = [];
    container.onKill = () => phases.push(journal.get('one')?.phase);
    const { changes, isWell, memory, past, phase } = await attend(container);
    expect(changes).toEqual(REPAIRED);
    expect([isWell, phase]).toEqual([true, 'running']);
    // As the next process finds it that goes on where this one has died.
    expect([container.did, phases]).toEqual([['kill', 'start'], ['killed']]);
    const [kill, start] = container.steps.map(({ at }) => at);
    expect((start ?? 0) - (kill ?? 0)).toBeGreaterThanOrEqual(TIMES.pause - 1);
    expect(memory.since - (start ?? 0)).toBeGreaterThanOrEqual(TIMES.grace - 1);
    // As of when it ended, not as of when that was seen.
    expect(past[0]?.memory.since).toBe(endedAt);
    expect(memory).toMatchObject({ repairAttempts: 1, crashes: [endedAt] });
  });

  test('is not repaired where that is switched off', async () => {
    const container = new ScriptedContainer(gateway);
    const settings = { ...SETTINGS, autoRepair: false };
    const { changes } = await attend(container, { given: { settings } });
    expect([changes, container.did]).toEqual([[], []]);
  });

  test('is left alone from the third crash within the window on', async () => {
    const container = new ScriptedContainer(gateway);
    const crashes = [container.finishedAt - 200_000, container.finishedAt - 100_000];
    const looping = await attend(container, { entry: { memory: { ...WELL, crashes } } });
    expect(looping.changes).toEqual(['degraded (kill)', 'crash_loop (kill)']);
    expect(container.did).toEqual([]);
    expect(looping.memory.crashes).toEqual([...crashes, container.finishedAt]);
  });

  test('and does so after each start, is given up after so many attempts', async () => {
    const container = new ScriptedContainer(gateway);
    container.onStart = () => container.end();
    const { changes, memory } = await attend(container);
    expect(changes).toEqual(['degraded (kill)', 'repairing (kill)', 'crash_loop (repair_failed)']);
    expect(container.did).toEqual(['kill', 'start', 'kill', 'start']);
    expect(memory.repairAttempts).toBe(2);
    // The crash itself, and two starts that came to nothing.
    expect(memory.crashes).toHaveLength(3);
  });

  test('is told to have ended as Docker said, unless that was another end', async () => {
    const container = new ScriptedContainer(gateway);
    const death = { agentId: 'one', userId: 'user', containerId: 'container', exitCode: 137 };
    const heard = (at: number) => ({ ...death, cause: 'stop', at }) as const;
    const near = await attend(container, { heard: heard(container.finishedAt + 1_000) });
    expect(near.changes[0]).toBe('degraded (stop)');
    const far = new ScriptedContainer(gateway);
    expect((await attend(far, { heard: heard(far.finishedAt - 60_000) })).changes[0]).toBe(
      'degraded (kill)',
    );
    const another = new ScriptedContainer(gateway);
    const of = { ...heard(another.finishedAt), containerId: 'another one' };
    expect((await attend(another, { heard: of })).changes[0]).toBe('degraded (kill)');
    const out = Object.assign(new ScriptedContainer(gateway), { oomKilled: true });
    expect((await attend(out, { heard: heard(out.finishedAt) })).changes[0]).toBe('degraded (oom)');
  });

  test('is not started when its container is another one by the time that it has its turn', async () => {
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

  test('is left to its supervisor when it would have to be made anew, and only then', async () => {
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

  test('is not touched, nor anything put down of it, once that was given up', async () => {
    const container = new ScriptedContainer(gateway);
    const signal = AbortSignal.abort();
    await expect(attend(container, { signal })).rejects.toMatchObject({ name: 'AbortError' });
    expect([journal.get('one')?.past, container.did]).toEqual([[], []]);
  });
});

describe('where an earlier process died over a repair', () => {
  test('the crash that it has counted is not counted again', async () => {
    const container = new ScriptedContainer(gateway);
    const at = container.finishedAt;
    const degraded = { ...WELL, state: 'degraded', since: at, crashes: [at] } as const;
    const { changes, memory } = await attend(container, { entry: { memory: degraded } });
    expect(changes).toEqual(['repairing (kill)', 'running (repaired)']);
    expect(memory.crashes).toEqual([at]);
  });

  test('what it has killed is started in the same attempt', async () => {
    const container = new ScriptedContainer(gateway);
    const entry = { phase: 'killed', memory: REPAIRING } as const;
    const { changes, memory } = await attend(container, { entry });
    expect(changes).toEqual(['running (repaired)']);
    expect(memory).toMatchObject({ repairAttempts: 1, crashes: [] });
  });

  test('what it has started and has ended since has failed its attempt', async () => {
    const container = new ScriptedContainer(gateway);
    const entry = { phase: 'started', memory: REPAIRING } as const;
    const { changes, memory } = await attend(container, { entry });
    expect(changes).toEqual(['running (repaired)']);
    expect(memory.repairAttempts).toBe(2);
    expect(memory.crashes).toHaveLength(1);
  });
});

describe('an agent that ended while Docker was away', () => {
  const away = (container: ScriptedContainer) => ({
    from: container.finishedAt - 10_000,
    until: container.finishedAt + 10_000,
  });

  test('is started, and no crash since then counts', async () => {
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

  test('is said to start once, however often it is tried', async () => {
    const container = new ScriptedContainer(gateway);
    const starting = { ...WELL, state: 'starting', since: Date.now() } as const;
    const scene = { entry: { memory: starting }, absences: [away(container)] };
    expect((await attend(container, scene)).changes).toEqual(['running (healthy)']);
  });

  test('and does not come up has crashed, and is repaired where that is wanted', async () => {
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

describe('an agent that does not answer', () => {
  test('is asked once more before anything is done', async () => {
    gateway.answers = [503, 200];
    const container = Object.assign(new ScriptedContainer(gateway), { status: 'running' });
    const { changes, isWell } = await attend(container);
    expect([changes, container.did, isWell]).toEqual([[], [], true]);
  });

  test('after its start is asked again, as often as a start may fail', async () => {
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
