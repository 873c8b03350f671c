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

/** Records the observation of a supervisor that finds the agent well. */
const watched = (memory = MEMORY) =>
  guard.watched(AGENT, memory, guard.lastStep('one'), () => Promise.resolve(CONTAINER));

const onDisk = async () => (await HostJournal.open(folder, log)).get('one');

function changed(entry: JournalEntry, id: string): JournalEntry {
  const memory = { ...entry.memory, state: 'degraded' as const, since: entry.memory.since + 1 };
  return withPast(entry, { id, from: 'running', cause: 'kill', reason: null, memory });
}

/** Records a change by a local repair that no supervisor has acknowledged. */
async function repairedHere(): Promise<void> {
  const entry = journal.get('one');
  if (entry) await journal.set(changed(entry, 'change'));
}

describe('journal', () => {
  test('lists agents that should run for the next process, and no removed agents', async () => {
    await watched();
    expect(await onDisk()).toEqual({
      agentId: 'one',
      userId: 'user',
      containerId: 'container',
      volumes: ['memory'],
      phase: 'running',
      memory: MEMORY,
      past: [],
    });
    await guard.forget('one');
    expect(await readdir(folder)).toEqual([]);
  });

  test('ignores a file that is torn or belongs to another agent', async () => {
    await watched();
    const [name = ''] = await readdir(folder);
    await writeFile(path.join(folder, 'other.json'), JSON.stringify(journal.get('one')));
    await writeFile(path.join(folder, name), '{"agentId":"on');
    expect((await HostJournal.open(folder, log)).entries()).toEqual([]);
    expect(lines.some((line) => line.includes('cannot be read'))).toBe(true);
  });

  test('reads all other files when some are unreadable', async () => {
    await watched();
    const entry = journal.get('one');
    if (!entry) throw new Error('journal entry missing');
    const ids = Array.from({ length: 10 }, (_, at) => `agent-${at}`);
    for (const agentId of ids) {
      await journal.set({ ...entry, agentId });
      // A directory replaces a file that a broken disk cannot read.
      await mkdir(path.join(folder, `broken-${agentId}.json`));
    }
    const read = (await HostJournal.open(folder, log)).entries().map(({ agentId }) => agentId);
    expect(read.sort()).toEqual([...ids, 'one'].sort());
  });

  test('keeps the last 60 changes of an agent whose supervisor acknowledges none', async () => {
    await watched();
    let entry = journal.get('one');
    for (let n = 0; entry && n < 200; n++) entry = changed(entry, `change ${n}`);
    expect(entry?.past).toHaveLength(60);
    expect(entry?.past.at(-1)?.id).toBe('change 199');
  });

  test('removes the file of an agent whose current entry cannot be stored', async () => {
    await watched();
    const entry = journal.get('one');
    if (!entry) throw new Error('journal entry missing');
    await journal.set({ ...entry, userId: 'x'.repeat(300_000) });
    expect(await readdir(folder)).toEqual([]);
  });

  test('stores the last of many rapid entries', async () => {
    await watched();
    const entry = journal.get('one');
    if (!entry) throw new Error('journal entry missing');
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

  test('syncs each entry and its file name to the disk', async () => {
    const handle = await open(folder, 'r');
    const sync = vi.spyOn(Object.getPrototypeOf(handle) as FileHandle, 'sync');
    await handle.close();
    await watched();
    expect(sync).toHaveBeenCalledTimes(2);
    sync.mockRestore();
  });

  test('keeps entries in memory when the disk is not writable', async () => {
    await writeFile(path.join(folder, 'file'), '');
    const elsewhere = await HostJournal.open(path.join(folder, 'file', 'journal'), log);
    const entry = { ...AGENT, containerId: 'c', volumes: [], past: [], memory: MEMORY };
    await elsewhere.set({ ...entry, phase: 'running' });
    expect(elsewhere.get('one')).toMatchObject({ phase: 'running' });
  });
});

test('does not block an operation forever on a hanging disk', async () => {
  await watched();
  const [name = ''] = await readdir(folder);
  const hanging = path.join(folder, `${name}.new`);
  await promisify(execFile)('mkfifo', [hanging]);
  expect(await guard.operation('one', () => Promise.resolve('done'))).toBe('done');
  // A write to a pipe blocks until the pipe is read.
  await readFile(hanging);
  await journal.settled();
});

describe('restart of an ended container', () => {
  const entry: JournalEntry = {
    agentId: 'one',
    userId: 'user',
    containerId: 'container',
    volumes: [],
    past: [],
    phase: 'running',
    memory: { ...MEMORY, since: 10 },
  };
  const inState = (state: WatchdogMemory['state']) => ({
    ...entry,
    memory: { ...entry.memory, state },
  });

  test('leaves an agent down that was stopped or is being changed', () => {
    expect(shouldRun(entry, 0)).toBe(true);
    expect(shouldRun({ ...entry, phase: 'held' }, 0)).toBe(false);
    expect(shouldRun(inState('stopped'), 0)).toBe(false);
    expect(shouldRun(inState('repairing'), 0)).toBe(true);
  });

  test('leaves an agent down that causes its own crash loop', () => {
    expect(shouldRun(inState('crash_loop'), 0)).toBe(false);
    expect(shouldRun(inState('crash_loop'), 11)).toBe(false);
    expect(shouldRun(inState('crash_loop'), 10)).toBe(true);
  });
});

describe('operation under the guard', () => {
  test("records the agent as held on the disk before the operation's first step", async () => {
    await watched();
    const seen = await guard.operation('one', onDisk);
    expect(seen?.phase).toBe('held');
    const entry = journal.get('one');
    expect(entry && shouldRun(entry, 0)).toBe(false);
  });

  test('aborts a local repair and begins after its end', async () => {
    const gate = new Gate();
    const steps: string[] = [];
    const repairing = guard.locally('one', async (signal) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      steps.push('aborted');
      await gate.pass();
      steps.push('ended');
    });
    const operation = guard.operation('one', () => Promise.resolve(steps.push('operation')));
    await others();
    expect(steps).toEqual(['aborted']);
    gate.open();
    await Promise.all([repairing, operation]);
    expect(steps).toEqual(['aborted', 'ended', 'operation']);
  });

  test('prevents a local repair during an operation', async () => {
    await watched();
    const gate = new Gate();
    const operation = guard.operation('one', gate.pass);
    expect(await guard.locally('one', () => Promise.reject(new Error('never')))).toBe(false);
    gate.open();
    await operation;
    expect(await guard.locally('one', () => Promise.resolve())).toBe(true);
  });

  test('keeps the agent held when a supervisor reports during the operation', async () => {
    await watched();
    await guard.operation('one', () => watched());
    expect(await onDisk()).toMatchObject({ phase: 'held' });
  });

  test('ignores an observation from before the operation', async () => {
    await watched();
    const glance = guard.lastStep('one');
    await guard.operation('one', () => Promise.resolve());
    await guard.watched(AGENT, MEMORY, glance, () => Promise.resolve(CONTAINER));
    expect(journal.get('one')?.phase).toBe('held');
    await watched();
    expect(journal.get('one')?.phase).toBe('running');
  });
});

describe('local repair under the guard', () => {
  test('runs one local repair of an agent at a time', async () => {
    const gate = new Gate();
    const first = guard.locally('one', gate.pass);
    expect(await guard.locally('one', () => Promise.reject(new Error('never')))).toBe(false);
    gate.open();
    expect(await first).toBe(true);
  });

  test('keeps the result of a local repair until its supervisor acknowledges it', async () => {
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
    // The supervisor has not acknowledged the repair yet.
    await guard.crashed('one', newer);
    expect(journal.get('one')).toEqual(made);
    await watched(newer);
    expect(journal.get('one')).toEqual({ ...made, memory: newer });
  });

  test('delays a start until the local repair ends, unless the start is aborted', async () => {
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

describe('observations of a supervisor', () => {
  test('records crashes and observations only of an agent that should run', async () => {
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

describe('repair by the supervisor', () => {
  test('waits for a local repair, and is refused when that has changed the agent', async () => {
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

  test('stops waiting for a local repair when it is aborted', async () => {
    const gate = new Gate();
    const local = guard.locally('one', gate.pass);
    const abort = new AbortController();
    const repair = guard.repair('one', abort.signal, () => Promise.resolve('made'));
    abort.abort();
    await expect(repair).rejects.toMatchObject({ name: 'AbortError' });
    gate.open();
    await local;
  });

  test("records the progress of a supervisor's repair", async () => {
    await watched();
    await guard.started('one');
    expect(journal.get('one')?.phase).toBe('running');
    // The phase is recorded before the kill.
    const seen = await guard.repair('one', never, onDisk, { ...MEMORY, repairAttempts: 1 });
    expect(seen).toMatchObject({ phase: 'killed', memory: { repairAttempts: 1 } });
    await guard.started('one');
    expect(journal.get('one')?.phase).toBe('started');
  });
});
