import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { MockActivityEnvironment } from '@temporalio/testing';
import { pino } from 'pino';
import { afterEach, expect, test, vi } from 'vitest';
import { heartbeating } from '../../activities/docker-activity.js';
import { createWatchdogActivities, unchanged } from '../../activities/watchdog.js';
import { eventStream } from '../../api/http/sse.js';
import { hostLimiters } from '../../src/agents/watchdog/host-limiters.js';
import { DockerHost } from '../../src/docker/containers/docker-host.js';
import { Database } from '../../src/platform/database/database.js';
import { RowChanges } from '../../src/platform/database/row-changes.js';
import { jittered } from '../../src/lib/jitter.js';
import { DockerAbsences } from '../../src/agents/watchdog/docker-absence.js';
import { LocalRepair } from '../../src/agents/local-repair/local-repair.js';
import { ControlPlaneReach } from '../../src/agents/local-repair/control-plane-reach.js';
import { periodically } from '../../src/platform/process/periodically.js';
import { connectPatiently } from '../../worker/connect.js';
import { DatabaseGate } from '../../worker/database-gate.js';
import { followDocker, type FollowDependencies } from '../../worker/follow-docker.js';
import { prepareTemporal, type PrepareDependencies } from '../../worker/prepare-temporal.js';
import { HostLease } from '../../worker/report-host.js';
import { sendNotifications } from '../../worker/send-notifications.js';

const PERIOD_MS = 120_000;
const AGENT = { agentId: 'a', userId: 'ada', host: 'local' };

afterEach(() => {
  vi.restoreAllMocks();
});

/** Calls the function a thousand times, as if all began at the same moment. */
const thousand = <T>(reported: () => T): T[] => Array.from({ length: 1_000 }, reported);

test('shortens a period at random by up to a tenth and never lengthens it', () => {
  const periods = thousand(() => jittered(PERIOD_MS));
  expect(Math.max(...periods)).toBeLessThanOrEqual(PERIOD_MS);
  expect(Math.min(...periods)).toBeGreaterThanOrEqual(PERIOD_MS * 0.9);
  expect(new Set(periods).size).toBeGreaterThan(100);
});

test('spreads checks of agents that were well at the same moment', () => {
  const delays = thousand(() => unchanged(PERIOD_MS).nextRetryDelay);
  expect(new Set(delays).size).toBeGreaterThan(100);
});

const log = pino({ enabled: false });
const nowhere = new DockerHost({ dockerHost: 'unix:///nowhere/docker.sock' });
const refused = () => Promise.reject(new Error('refused'));

function endWith(stop: AbortController): never {
  stop.abort();
  throw new Error('not foreseen');
}

/** Creates a local repair that repairs nothing because supervisors are available. */
function localRepair(events: DockerHost['events'], check: () => void) {
  return new LocalRepair({
    docker: { events },
    absences: new DockerAbsences(),
    reach: { awayForMs: 0 },
    times: { away: 1 },
    mayAct: () => false,
    log,
    journal: {
      entries() {
        check();
        return [];
      },
    },
  } as unknown as ConstructorParameters<typeof LocalRepair>[0]); // only the parts used here
}

/** Provides a Docker engine that never sends an event. */
async function withQuietEngine(use: (host: DockerHost) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(path.join(tmpdir(), 'aps-engine-'));
  const socket = path.join(folder, 'engine.sock');
  const engine = createServer((_request, response) => response.writeHead(200).flushHeaders());
  try {
    await once(engine.listen(socket), 'listening');
    await use(new DockerHost({ dockerHost: `unix://${socket}` }));
  } finally {
    engine.close();
    engine.closeAllConnections();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Name of the activity that also jitters its heartbeats. */
const BEATS_TOO = 'an unhealthy agent is checked';

/** Loops that do their work once and end in the pause after it. */
const AGAIN_AND_AGAIN: Readonly<Record<string, (stop: AbortController) => Promise<unknown>>> = {
  'regular work runs': (stop) => {
    const work = () => stop.abort();
    return periodically({ everyMs: PERIOD_MS, failure: 'never', log, work }, stop.signal);
  },
  'a worker pings its database': (stop) => {
    const ping = () => Promise.resolve(stop.abort());
    return new DatabaseGate().keep({ ping }, log, stop.signal);
  },
  'operators are notified': (stop) => {
    const database = new Database('postgres://nobody@127.0.0.1:1/nothing', { maxConnections: 1 });
    const query = () => Promise.resolve(stop.abort()).then(() => []);
    vi.spyOn(database, 'asPlatform').mockReturnValue({ ...database.asPlatform(), query });
    const notifier = { notify: () => Promise.resolve([]) };
    return sendNotifications({ database, notifier, log }, stop.signal);
  },
  'a host is written down': (stop) => {
    const database = new Database('postgres://nobody@127.0.0.1:1/nothing', { maxConnections: 1 });
    const host = { id: 'local', capacity: 1, ports: { first: 1, last: 1 } };
    const keeping = new HostLease({ database, docker: nowhere, host, log }).keep(stop.signal);
    stop.abort();
    return keeping;
  },
  'Temporal is looked for': (stop) => {
    vi.spyOn(log, 'warn').mockImplementation(() => stop.abort());
    const place = { connectionOptions: { address: '127.0.0.1:1' }, namespace: 'default' };
    return connectPatiently(place, { log, signal: stop.signal });
  },
  [BEATS_TOO]: () => {
    const attempt = new MockActivityEnvironment();
    const { watchDegraded } = createWatchdogActivities({
      docker: { containers: { inspect: () => Promise.resolve(undefined) } },
      ports: { of: () => Promise.resolve(1) },
      states: { recordSeen: () => setImmediate(() => attempt.cancel()) },
      limiters: hostLimiters(1),
      checkIntervalMs: PERIOD_MS,
      degradedCheckIntervalMs: PERIOD_MS,
    } as unknown as Parameters<typeof createWatchdogActivities>[0]); // only the parts used here
    return attempt.run(() => watchDegraded(AGENT, 'stopped')).catch(() => undefined); // cancelled
  },
  'Temporal is asked for what it has refused': (stop) => {
    vi.spyOn(log, 'warn').mockImplementation(() => stop.abort());
    const connection = { withDeadline: () => Promise.resolve() };
    const schedule = { create: refused, getHandle: () => ({ describe: refused }) };
    const dependencies = { connection, client: { schedule }, namespace: 'n' };
    return prepareTemporal(
      { ...dependencies, host: 'local', log } as unknown as PrepareDependencies, // only the parts used here
      stop.signal,
    );
  },
  'a connection for row changes is opened': async () => {
    const changes = new RowChanges('postgres://nobody@127.0.0.1:1/nothing');
    changes.of('mails');
    await vi.waitFor(() => expect(Math.random).toHaveBeenCalled());
    await changes.close();
  },
  'the outage of the control plane is checked': (stop) => {
    async function* silent(signal: AbortSignal) {
      await once(signal, 'abort');
      yield* [];
    }
    return localRepair(silent, () => stop.abort()).run(stop.signal);
  },
  'the control plane is asked': (stop) => {
    const call = () => Promise.resolve(stop.abort());
    return new ControlPlaneReach({ somebody: call }, PERIOD_MS, log).watch(stop.signal);
  },
  'Docker is followed': (stop) => {
    const docker = { events: () => endWith(stop) };
    return followDocker({ docker, log } as unknown as FollowDependencies, stop.signal); // only the parts used here
  },
  'Docker is followed by whoever repairs for want of supervisors': (stop) => {
    const check = () => undefined;
    return localRepair(() => endWith(stop), check).run(stop.signal);
  },
  'Docker is connected to': async (stop) => {
    for await (const { kind } of nowhere.events(stop.signal)) {
      expect(kind).toBe('lost');
      stop.abort();
    }
  },
  'Docker is asked whether it is still there': (stop) =>
    withQuietEngine(async (host) => {
      for await (const { kind } of host.events(stop.signal)) {
        expect(kind).toBe('connected');
        expect(Math.random).toHaveBeenCalledOnce();
        stop.abort();
      }
    }),
  'an activity says that it is alive': () =>
    new MockActivityEnvironment().run(() => heartbeating(() => Promise.resolve())),
  'a stream says that it is alive': async () => {
    const { source } = eventStream(Readable.from(['one'].map((data) => ({ data }))));
    for await (const event of source) expect(String(event)).toBe('data: one\n\n');
  },
};

test.each(Object.keys(AGAIN_AND_AGAIN))(
  'randomizes the pause after which %s again',
  async (what) => {
    const chance = vi.spyOn(Math, 'random');
    await AGAIN_AND_AGAIN[what]?.(new AbortController());
    expect(chance).toHaveBeenCalledTimes(what === BEATS_TOO ? 2 : 1);
  },
);
