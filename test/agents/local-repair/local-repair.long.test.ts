import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { DockerAbsences } from '../../../src/agents/watchdog/docker-absence.js';
import { hostLimiters } from '../../../src/agents/watchdog/host-limiters.js';
import type { ContainerEvent } from '../../../src/docker/containers/container-events.js';
import { NetworkOpenError } from '../../../src/docker/egress/host-egress.js';
import { AgentGuard } from '../../../src/agents/local-repair/agent-guard.js';
import { HostJournal } from '../../../src/agents/local-repair/host-journal.js';
import type { JournalEntry } from '../../../src/agents/local-repair/journal-entry.js';
import {
  LocalRepair,
  type LocalRepairDependencies,
} from '../../../src/agents/local-repair/local-repair.js';
import { pause } from '../../../src/lib/pause.js';
import { LOCAL_REPAIR_TIMES } from '../../../worker/local-repair.js';
import { keptLog } from '../../support/platform-environment.js';
import { until } from '../../support/until.js';
import { ScriptedContainer, ScriptedGateway } from './scripted-container.js';
import { WELL } from './well.js';

const FOR_EVER_MS = 2 ** 31 - 1;
const CHANGE = { id: '1', from: 'running', cause: 'kill', reason: null, memory: WELL } as const;

const gateway = new ScriptedGateway();
const { log, lines } = keptLog();
let folder: string;
let journal: HostJournal;
let container: ScriptedContainer;
let absences: DockerAbsences;
/** Docker events from its first connection on. */
let events: ContainerEvent[];
/** Milliseconds since the control plane became unavailable. */
let awayForMs: number;
let reported: string[];
let stop: AbortController;
let running: Promise<void>;

beforeAll(() => gateway.listen());
afterAll(() => gateway.close());
beforeEach(async () => {
  lines.length = 0;
  folder = await mkdtemp(path.join(tmpdir(), 'aps-local-repair-'));
  journal = await HostJournal.open(folder, log);
  container = new ScriptedContainer(gateway);
  absences = new DockerAbsences();
  events = [{ kind: 'connected', lostAt: undefined }];
  awayForMs = LOCAL_REPAIR_TIMES.away;
  reported = [];
  stop = new AbortController();
  running = Promise.resolve();
});
afterEach(async () => {
  stop.abort();
  await running;
  await rm(folder, { recursive: true, force: true });
});

function known(entry: Partial<JournalEntry> = {}): Promise<void> {
  const agent = { agentId: 'one', userId: 'user', containerId: 'container' };
  return journal.set({
    ...agent,
    volumes: [],
    phase: 'running',
    memory: WELL,
    past: [],
    ...entry,
  });
}

function begin(guard = new AgentGuard(journal)): void {
  const containers = {
    running: () => Promise.resolve(new Set(container.status === 'running' ? ['one'] : [])),
    inspect: () => container.inspect(),
    kill: () => container.kill(),
    start: () => container.start(),
  };
  async function* reported(signal: AbortSignal) {
    while (!signal.aborted) {
      yield* events.splice(0);
      await pause(5, signal);
    }
  }
  const repair = new LocalRepair({
    // Only the parts that LocalRepair uses.
    docker: { containers, events: reported } as unknown as LocalRepairDependencies['docker'],
    journal,
    log,
    guard,
    absences,
    limiters: hostLimiters(1),
    reach: {
      get awayForMs() {
        return awayForMs;
      },
    },
    mayAct: () => true,
    notify: ({ agentId }) => Promise.resolve(void tellings(agentId)),
    progress: {
      isStarting: () => Promise.resolve(false),
    } as unknown as LocalRepairDependencies['progress'],
    times: { ...LOCAL_REPAIR_TIMES, again: 0, pause: 10, grace: 10, notify: FOR_EVER_MS },
    settings: {
      autoRepair: true,
      maxRepairAttempts: 3,
      checkIntervalMs: FOR_EVER_MS,
      degradedCheckIntervalMs: 10,
      startupFailureThreshold: 3,
      crashLoopWindowMs: 300_000,
      crashLoopThreshold: 3,
    },
  });
  running = repair.run(stop.signal);
}

const tellings = (agentId: string) => reported.push(agentId);
const causes = () => journal.get('one')?.past.map(({ cause }) => cause);
const isUp = () => journal.get('one')?.memory.state === 'running' && container.status === 'running';
const isInCharge = () =>
  lines.some((line) => line.includes('agents of this host are repaired locally'));

test('reports the present and the past absences of Docker', async () => {
  events = [];
  begin();
  await until(() => Promise.resolve(absences.startOf(1) === 0));
  events = [{ kind: 'connected', lostAt: undefined }];
  await until(() => Promise.resolve(absences.past.length === 1));
  const [first] = absences.past;
  expect(first).toEqual({ from: 0, until: expect.any(Number) });
  expect(absences.startOf(Date.now() + 1)).toBeUndefined();
  events = [{ kind: 'lost', reason: 'gone' }];
  await until(() => Promise.resolve(absences.startOf(Date.now()) !== undefined));
  const lostAt = Date.now() + 60_000;
  events = [{ kind: 'connected', lostAt }];
  await until(() => Promise.resolve(absences.past.length === 2));
  expect(absences.past[1]).toMatchObject({ from: lostAt - 30_000 });
});

test('starts an agent once its start is allowed', async () => {
  let refusals = 0;
  container.onStart = () => {
    if (refusals++ >= 2) return;
    container.status = 'exited';
    throw new NetworkOpenError('not tried yet');
  };
  await known();
  begin();
  await until(isUp);
  expect(causes()).toEqual(['host_returned', 'healthy']);
  expect(lines.filter((line) => line.includes('cannot be repaired locally yet'))).toHaveLength(1);
});

test("repairs nothing before the control plane's outage is long enough, or after its end", async () => {
  awayForMs -= 1;
  await known();
  begin();
  await pause(2_500, stop.signal);
  expect([isInCharge(), container.did]).toEqual([false, []]);
  awayForMs += 1;
  await until(isUp);
  // The outage continues until the control plane is reached.
  awayForMs = 1;
  container.end();
  await until(() => causes()?.at(-1) === 'repaired');
  awayForMs = 0;
  await until(() => lines.some((line) => line.includes('supervisors are reachable again')));
  container.end();
  await pause(6_000, stop.signal);
  expect(container.status).toBe('exited');
});

test('checks an agent again that was left to its supervisor when Docker is back', async () => {
  container.id = 'another one';
  await known();
  begin();
  await until(() => lines.some((line) => line.includes('waits for its supervisor')));
  container.id = 'container';
  events.push({ kind: 'lost', reason: 'gone' }, { kind: 'connected', lostAt: Date.now() });
  await until(isUp);
});

test('counts no crash for an agent that ended before the connection to Docker was lost', async () => {
  events = [{ kind: 'connected', lostAt: container.finishedAt + 20_000 }];
  await known();
  begin();
  await until(isUp);
  expect(causes()).toEqual(['host_returned', 'healthy']);
});

test('completes an unfinished start at once although the container runs', async () => {
  container.status = 'running';
  const starting = { ...WELL, state: 'starting' } as const;
  const begun = { ...CHANGE, cause: 'host_returned', memory: starting } as const;
  await known({ memory: starting, past: [begun] });
  begin();
  await until(isUp);
  expect(causes()).toEqual(['host_returned', 'healthy']);
});

describe('notification of supervisors', () => {
  const isReported = (times: number) => until(() => reported.length === times);

  test('notifies a supervisor of local repairs once it can act, and of nothing else', async () => {
    awayForMs = 1;
    await known({ past: [CHANGE] });
    await known({ agentId: 'changed', phase: 'held', past: [CHANGE] });
    await known({ agentId: 'well' });
    begin();
    await pause(2_500, stop.signal);
    expect(reported).toEqual([]);
    awayForMs = 0;
    await isReported(1);
    expect(reported).toEqual(['one']);
  });

  test('notifies a supervisor of later repairs regardless of earlier notifications', async () => {
    awayForMs = 0;
    await known({ past: [CHANGE] });
    begin();
    await isReported(1);
    await known();
    await pause(2_500, stop.signal);
    await known({ past: [CHANGE] });
    await isReported(2);
  });

  test('forgets the notifications of a removed agent', async () => {
    awayForMs = 0;
    await known({ past: [CHANGE] });
    begin();
    await isReported(1);
    await journal.delete('one');
    await pause(2_500, stop.signal);
    await known({ past: [CHANGE] });
    await isReported(2);
  });
});
