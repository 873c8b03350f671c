import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { hostTurns } from '../../src/agents/host-turns.js';
import { NetworkOpenError } from '../../src/egress/host-egress.js';
import { AgentGuard } from '../../src/local-repair/agent-guard.js';
import { HostJournal } from '../../src/local-repair/host-journal.js';
import { LocalRepair, type LocalRepairDependencies } from '../../src/local-repair/local-repair.js';
import { LOCAL_REPAIR_TIMES } from '../../worker/local-repair.js';
import { pause } from '../../src/pause.js';
import { keptLog } from '../support/platform-environment.js';
import { until } from '../support/until.js';
import { WELL } from './well.js';

const gateway = createServer((_, response) => {
  response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}');
});
let folder: string;
const stop = new AbortController();

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'aps-local-repair-'));
  gateway.listen(0, '127.0.0.1');
  await once(gateway, 'listening');
});
afterAll(async () => {
  stop.abort();
  gateway.close();
  await rm(folder, { recursive: true, force: true });
});

test('an agent that may not start yet is started once it may', async () => {
  const { log, lines } = keptLog();
  const { port } = gateway.address() as AddressInfo; // it listens on TCP
  const journal = await HostJournal.open(folder, log);
  const agent = { agentId: 'one', userId: 'user', containerId: 'container' };
  await journal.set({ ...agent, volumes: [], phase: 'running', memory: WELL, past: [] });
  let [isRunning, refusals] = [false, 0];
  const endedAt = new Date(Date.now() - 1_000).toISOString();
  const state = () => ({
    id: agent.containerId,
    ...(isRunning
      ? { status: 'running', startedAt: new Date().toISOString() }
      : { status: 'exited', exitCode: 255, finishedAt: endedAt }),
    ...{ oomKilled: false, port },
  });
  // As much of Docker as is asked, on a host whose networks are not known to be guarded yet.
  const docker = {
    containers: {
      running: () => Promise.resolve(new Set(isRunning ? [agent.agentId] : [])),
      inspect: () => Promise.resolve(state()),
      start() {
        if (refusals++ < 2) return Promise.reject(new NetworkOpenError('not tried yet'));
        isRunning = true;
        return Promise.resolve();
      },
    },
    async *events(signal: AbortSignal) {
      yield { kind: 'connected', lostAt: undefined };
      await pause(2 ** 31 - 1, signal);
    },
  } as unknown as LocalRepairDependencies['docker'];
  const repair = new LocalRepair({
    ...{ docker, journal, log, guard: new AgentGuard(journal), turns: hostTurns(1) },
    reach: { awayForMs: LOCAL_REPAIR_TIMES.away },
    mayAct: () => true,
    tell: () => Promise.resolve(),
    progress: {
      isStarting: () => Promise.resolve(false),
    } as unknown as LocalRepairDependencies['progress'],
    times: { ...LOCAL_REPAIR_TIMES, again: 0 },
    settings: {
      ...{ autoRepair: true, maxRepairAttempts: 3, checkIntervalMs: 60_000 },
      ...{ degradedCheckIntervalMs: 1_000, startupFailureThreshold: 3 },
      ...{ crashLoopWindowMs: 300_000, crashLoopThreshold: 3 },
    },
  });
  const running = repair.run(stop.signal);
  const isUp = () => journal.get(agent.agentId)?.memory.state === 'running' && isRunning;
  await until(isUp);
  stop.abort();
  await running;
  expect(journal.get(agent.agentId)?.past.map(({ cause }) => cause)).toEqual([
    'host_returned',
    'healthy',
  ]);
  expect(lines.filter((line) => line.includes('cannot be repaired here yet'))).toHaveLength(1);
});
