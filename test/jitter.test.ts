import { MockActivityEnvironment } from '@temporalio/testing';
import { pino } from 'pino';
import { afterEach, expect, test, vi } from 'vitest';
import { createWatchdogActivities, unchanged } from '../activities/watchdog.js';
import { hostTurns } from '../src/agents/host-turns.js';
import { DockerHost } from '../src/containers/docker-host.js';
import { Database } from '../src/database/database.js';
import { jittered } from '../src/jitter.js';
import { connectPatiently } from '../worker/connect.js';
import { DatabaseGate } from '../worker/database-gate.js';
import { HostLease } from '../worker/report-host.js';
import { sendNotifications } from '../worker/send-notifications.js';

const PERIOD_MS = 120_000;
const AGENT = { agentId: 'a', userId: 'ada', host: 'local' };

afterEach(() => {
  vi.restoreAllMocks();
});

/** What a thousand that begin at the same moment are told. */
const thousand = <T>(told: () => T): T[] => Array.from({ length: 1_000 }, told);

test('a period is up to a tenth shorter by chance, and never longer', () => {
  const periods = thousand(() => jittered(PERIOD_MS));
  expect(Math.max(...periods)).toBeLessThanOrEqual(PERIOD_MS);
  expect(Math.min(...periods)).toBeGreaterThanOrEqual(PERIOD_MS * 0.9);
  expect(new Set(periods).size).toBeGreaterThan(100);
});

test('checks of agents that were well at the same moment do not come at the same moment', () => {
  const delays = thousand(() => unchanged(PERIOD_MS).nextRetryDelay);
  expect(new Set(delays).size).toBeGreaterThan(100);
});

const log = pino({ enabled: false });
const nowhere = new DockerHost({ dockerHost: 'unix:///nowhere/docker.sock' });

/** Each does its work once, and ends in the pause after it. */
const AGAIN_AND_AGAIN: Readonly<Record<string, (stop: AbortController) => Promise<unknown>>> = {
  'a worker asks its database': (stop) => {
    const ping = () => Promise.resolve(stop.abort());
    return new DatabaseGate().keep({ ping }, log, stop.signal);
  },
  'operators are told': (stop) => {
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
    return connectPatiently({ address: '127.0.0.1:1' }, log, stop.signal);
  },
  'an agent is looked at that is not well': () => {
    const attempt = new MockActivityEnvironment();
    const { watchDegraded } = createWatchdogActivities({
      docker: { containers: { inspect: () => Promise.resolve(undefined) } },
      specs: {
        portOf: () => Promise.resolve(1),
        recordSeen: () => setImmediate(() => attempt.cancel()),
      },
      turns: hostTurns(1),
      ...{ checkIntervalMs: PERIOD_MS, degradedCheckIntervalMs: PERIOD_MS },
    } as unknown as Parameters<typeof createWatchdogActivities>[0]); // all that is asked for here
    return attempt.run(() => watchDegraded(AGENT, 'stopped')).catch(() => undefined); // cancelled
  },
};

test.each(Object.keys(AGAIN_AND_AGAIN))(
  'the pause after which %s again is by chance',
  async (what) => {
    const chance = vi.spyOn(Math, 'random');
    await AGAIN_AND_AGAIN[what]?.(new AbortController());
    expect(chance).toHaveBeenCalledOnce();
  },
);
