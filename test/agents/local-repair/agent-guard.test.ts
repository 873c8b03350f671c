import { execFile } from 'node:child_process';
import {
  mkdir,
  mkdtemp,
  open,
  readFile,
  readdir,
  rm,
  writeFile,
  type FileHandle,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setImmediate as others } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { WatchdogMemory } from '../../../src/types/watchdog.js';
import { AgentGuard, RepairedLocallyError } from '../../../src/agents/local-repair/agent-guard.js';
import { HostJournal } from '../../../src/agents/local-repair/host-journal.js';
import {
  shouldRun,
  withPast,
  type JournalEntry,
} from '../../../src/agents/local-repair/journal-entry.js';
import { keptLog } from '../../support/platform-environment.js';
import { until } from '../../support/until.js';
import { Gate } from '../../workflows/support/gate.js';

const MEMORY: WatchdogMemory = {
  version: 1,
  state: 'running',
  since: 1,
  crashes: [],
  repairAttempts: 0,
  lastRepair: null,
};
const AGENT = { agentId: 'one', userId: 'user', host: 'local' };
const CONTAINER = { id: 'container', volumes: ['memory'] };
const never = new AbortController().signal;

let folder: string;
let journal: HostJournal;
let guard: AgentGuard;
const { log, lines } = keptLog();

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'aps-guard-'));
  journal = await HostJournal.open(folder, log);
  guard = new AgentGuard(journal);
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** As a supervisor that finds the agent well. */
const watched = (memory = MEMORY) =>
  guard.watched(AGENT, memory, guard.lastStep('one'), () => Promise.resolve(CONTAINER));

const onDisk = async () => (await HostJournal.open(folder, log)).get('one');

function changed(entry: JournalEntry, id: string): JournalEntry {
  const memory = { ...entry.memory, state: 'degraded' as const, since: entry.memory.since + 1 };
  return withPast(entry, { id, from: 'running', cause: 'kill', reason: null, memory });
}

/** What a local repair has done and no supervisor knows. */
async function repairedHere(): Promise<void> {
  const entry = journal.get('one');
  if (entry) await journal.set(changed(entry, 'change'));
}

describe('the journal', () => {
  test('says what should run to the next process, and not of what was removed', async () => {
    await watched();
    expect(await onDisk()).toEqual({
      ...{ agentId: 'one', userId: 'user', containerId: 'container', volumes: ['memory'] },
      ...{ phase: 'running', memory: MEMORY, past: [] },
    });
    await guard.forget('one');
    expect(await readdir(folder)).toEqual([]);
  });

  test('does not know an agent whose file is torn or of somebody else', async () => {
    await watched();
    const [name = ''] = await readdir(folder);
    await writeFile(path.join(folder, 'other.json'), JSON.stringify(journal.get('one')));
    await writeFile(path.join(folder, name), '{"agentId":"on');
    expect((await HostJournal.open(folder, log)).entries()).toEqual([]);
    expect(lines.some((line) => line.includes('cannot be read'))).toBe(true);
  });

  test('knows all others where a file cannot be read at all', async () => {
    await watched();
    const entry = journal.get('one');
    if (!entry) throw new Error('it has just been put down');
    const ids = Array.from({ length: 10 }, (_, at) => `agent-${at}`);
    for (const agentId of ids) {
      await journal.set({ ...entry, agentId });
      // As a file on a broken disk: it is there, and gives nothing.
      await mkdir(path.join(folder, `broken-${agentId}.json`));
    }
    const read = (await HostJournal.open(folder, log)).entries().map(({ agentId }) => agentId);
    expect(read.sort()).toEqual([...ids, 'one'].sort());
  });

  test('keeps the last changes of an agent of which nobody takes anything in', async () => {
    await watched();
    let entry = journal.get('one');
    for (let n = 0; entry && n < 200; n++) entry = changed(entry, `change ${n}`);
    expect(entry?.past).toHaveLength(60);
    expect(entry?.past.at(-1)?.id).toBe('change 199');
  });

  test('says nothing of an agent of which it cannot say what is so now', async () => {
    await watched();
    const entry = journal.get('one');
    if (!entry) throw new Error('it has just been put down');
    await journal.set({ ...entry, userId: 'x'.repeat(300_000) });
    expect(await readdir(folder)).toEqual([]);
  });

  test('says in the end what was said last, however fast that follows', async () => {
    await watched();
    const entry = journal.get('one');
    if (!entry) throw new Error('it has just been put down');
    for (let since = 1; since <= 200; since++) {
      void journal.set({ ...entry, memory: { ...MEMORY, since } });
    }
    await journal.settled();
    expect((await onDisk())?.memory.since).toBe(200);
    for (let since = 1; since <= 20; since++) {
      void journal.set({ ...entry, memory: { ...MEMORY, since } });
    }
    await journal.delete('one');
    expect(await readdir(folder)).toEqual([]);
  });

  test('waits for the disk with each entry, and with the name of its file', async () => {
    const handle = await open(folder, 'r');
    const sync = vi.spyOn(Object.getPrototypeOf(handle) as FileHandle, 'sync');
    await handle.close();
    await watched();
    expect(sync).toHaveBeenCalledTimes(2);
    sync.mockRestore();
  });

  test('is kept in memory where nothing can be written', async () => {
    await writeFile(path.join(folder, 'file'), '');
    const elsewhere = await HostJournal.open(path.join(folder, 'file', 'journal'), log);
    const entry = { ...AGENT, ...{ containerId: 'c', volumes: [], past: [], memory: MEMORY } };
    await elsewhere.set({ ...entry, phase: 'running' });
    expect(elsewhere.get('one')).toMatchObject({ phase: 'running' });
  });
});

test('a disk that hangs keeps no operation waiting for ever', async () => {
  await watched();
  const [name = ''] = await readdir(folder);
  const hanging = path.join(folder, `${name}.new`);
  await promisify(execFile)('mkfifo', [hanging]);
  expect(await guard.operation('one', () => Promise.resolve('done'))).toBe('done');
  // Who writes into a pipe waits until somebody reads it.
  await readFile(hanging);
  await journal.settled();
});

describe('an agent whose container has ended is brought up', () => {
  const entry: JournalEntry = {
    ...{ agentId: 'one', userId: 'user', containerId: 'container', volumes: [], past: [] },
    ...{ phase: 'running', memory: { ...MEMORY, since: 10 } },
  };
  const inState = (state: WatchdogMemory['state']) => ({
    ...entry,
    memory: { ...entry.memory, state },
  });

  test('unless it was stopped, or is being changed', () => {
    expect(shouldRun(entry, 0)).toBe(true);
    expect(shouldRun({ ...entry, phase: 'held' }, 0)).toBe(false);
    expect(shouldRun(inState('stopped'), 0)).toBe(false);
    expect(shouldRun(inState('repairing'), 0)).toBe(true);
  });

  test('unless it is in a loop of crashes that is its own doing', () => {
    expect(shouldRun(inState('crash_loop'), 0)).toBe(false);
    expect(shouldRun(inState('crash_loop'), 11)).toBe(false);
    expect(shouldRun(inState('crash_loop'), 10)).toBe(true);
  });
});

describe('an operation', () => {
  test('has the agent left alone from before its first step on, on the disk', async () => {
    await watched();
    const seen = await guard.operation('one', onDisk);
    expect(seen?.phase).toBe('held');
    const entry = journal.get('one');
    expect(entry && shouldRun(entry, 0)).toBe(false);
  });

  test('ends a local repair, and begins when that has ended', async () => {
    const gate = new Gate();
    const steps: string[] = [];
    const repairing = guard.locally('one', async (signal) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      steps.push('told to end');
      await gate.pass();
      steps.push('ended');
    });
    const operation = guard.operation('one', () => Promise.resolve(steps.push('operation')));
    await others();
    expect(steps).toEqual(['told to end']);
    gate.open();
    await Promise.all([repairing, operation]);
    expect(steps).toEqual(['told to end', 'ended', 'operation']);
  });

  test('keeps a local repair from beginning', async () => {
    await watched();
    const gate = new Gate();
    const operation = guard.operation('one', gate.pass);
    expect(await guard.locally('one', () => Promise.reject(new Error('never')))).toBe(false);
    gate.open();
    await operation;
    expect(await guard.locally('one', () => Promise.resolve())).toBe(true);
  });

  test('is not undone by what is seen while it is under way', async () => {
    await watched();
    await guard.operation('one', () => watched());
    expect(await onDisk()).toMatchObject({ phase: 'held' });
  });

  test('is not overtaken by what was seen before it', async () => {
    await watched();
    const glance = guard.lastStep('one');
    await guard.operation('one', () => Promise.resolve());
    await guard.watched(AGENT, MEMORY, glance, () => Promise.resolve(CONTAINER));
    expect(journal.get('one')?.phase).toBe('held');
    await watched();
    expect(journal.get('one')?.phase).toBe('running');
  });
});

describe('a local repair', () => {
  test('is made once at a time', async () => {
    const gate = new Gate();
    const first = guard.locally('one', gate.pass);
    expect(await guard.locally('one', () => Promise.reject(new Error('never')))).toBe(false);
    gate.open();
    expect(await first).toBe(true);
  });

  test('and what it has done stands, whatever a supervisor sees or counts', async () => {
    await watched();
    const gate = new Gate();
    const newer = { ...MEMORY, since: 100, crashes: [100] };
    const local = guard.locally('one', async () => {
      await others();
      await guard.crashed('one', newer);
      await repairedHere();
      await gate.pass();
    });
    await until(() => journal.get('one')?.past.length === 1);
    const made = journal.get('one');
    expect(made?.memory.crashes).toEqual([]);
    await watched(newer);
    await guard.crashed('one', newer);
    expect(journal.get('one')).toEqual(made);
    gate.open();
    await local;
    // Its supervisor has not taken it in yet.
    await guard.crashed('one', newer);
    expect(journal.get('one')).toEqual(made);
    await watched(newer);
    expect(journal.get('one')).toEqual({ ...made, memory: newer });
  });

  test('that is under way is waited for by a start of what was there, which may be given up', async () => {
    const gate = new Gate();
    const local = guard.locally('one', gate.pass);
    const steps: string[] = [];
    const start = guard.afterRepair('one', never, () => Promise.resolve(steps.push('start')));
    const leaving = new AbortController();
    const left = guard.afterRepair('one', leaving.signal, () => Promise.resolve());
    leaving.abort();
    await expect(left).rejects.toMatchObject({ name: 'AbortError' });
    await others();
    expect(steps).toEqual([]);
    gate.open();
    await Promise.all([local, start]);
    expect(steps).toEqual(['start']);
  });
});

describe('what a supervisor counts or sees', () => {
  test('is known from then on of an agent that should run, and of no other', async () => {
    await watched();
    const crashed = { ...MEMORY, crashes: [5] };
    await guard.crashed('one', crashed);
    expect((await onDisk())?.memory).toEqual(crashed);
    const later = { ...crashed, since: 6 };
    await watched(later);
    expect((await onDisk())?.memory).toEqual(later);
    await guard.operation('one', () => Promise.resolve());
    await guard.crashed('one', { ...later, crashes: [5, 7] });
    expect(await onDisk()).toMatchObject({ phase: 'held', memory: later });
  });
});

describe('a repair of the supervisor', () => {
  test('waits for a local one, and is not made when that has done anything', async () => {
    await watched();
    const gate = new Gate();
    const local = guard.locally('one', async () => {
      await gate.pass();
      await repairedHere();
    });
    let killed = false;
    const kill = () => Promise.resolve((killed = true));
    const repair = guard.repair('one', never, kill, MEMORY);
    gate.open();
    await local;
    await expect(repair).rejects.toBeInstanceOf(RepairedLocallyError);
    expect(killed).toBe(false);
    expect(guard.unappliedTransitions('one', undefined).map(({ id }) => id)).toEqual(['change']);
    expect(guard.unappliedTransitions('one', 'change')).toEqual([]);
    expect(await guard.repair('one', never, kill, MEMORY)).toBe(true);
  });

  test('that is given up does not wait', async () => {
    const gate = new Gate();
    const local = guard.locally('one', gate.pass);
    const abort = new AbortController();
    const repair = guard.repair('one', abort.signal, () => Promise.resolve('made'));
    abort.abort();
    await expect(repair).rejects.toMatchObject({ name: 'AbortError' });
    gate.open();
    await local;
  });

  test('leaves word of how far it is', async () => {
    await watched();
    await guard.started('one');
    expect(journal.get('one')?.phase).toBe('running');
    // Before it kills.
    const seen = await guard.repair('one', never, onDisk, { ...MEMORY, repairAttempts: 1 });
    expect(seen).toMatchObject({ phase: 'killed', memory: { repairAttempts: 1 } });
    await guard.started('one');
    expect(journal.get('one')?.phase).toBe('started');
  });
});
