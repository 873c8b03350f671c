import { afterAll, beforeAll, expect, test } from 'vitest';
import { containerName } from '../../../src/docker/containers/container-spec.js';
import { until } from '../../support/until.js';
import { testPlatform, type TestPlatform, type TestUser } from '../../support/platform.js';
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.js';
import { firstCheckIsMade, shownBy } from '../../support/watchdog.js';

let proxy: TcpProxy;
let on: TestPlatform;
let user: TestUser;

beforeAll(async () => {
  on = await testPlatform({
    async temporalForWorkers(address) {
      proxy = await startTcpProxy(`tcp://${address}`);
      return `127.0.0.1:${proxy.port}`;
    },
    localRepair: {
      probe: 300,
      away: 1_000,
      again: 1_000,
      notify: 15_000,
      pause: 300,
      grace: 1_000,
    },
  });
  user = await on.signUp('network');
});
afterAll(async () => {
  await on?.close();
  await proxy?.close();
});

test('reports local repairs with their original times once Temporal is back', async () => {
  const id = await on.runningAgent(user);
  const shown = shownBy(on, user);
  await firstCheckIsMade(on, id);
  proxy.cut();
  const killedAt = Date.now();
  await on.docker.getContainer(containerName(id)).kill();
  const up = async () => {
    const state = await on.containers.inspect(id);
    return state?.status === 'running' && Date.parse(state.startedAt ?? '') > killedAt;
  };
  await until(up);
  // Covers the grace period and the verification.
  await until(() => Promise.resolve(on.logged.some((line) => line.includes('"repaired"'))));
  const { body: before } = await on.backend(user, 'GET', `/api/agents/${id}`);
  expect(before.watchdog).toMatchObject({ state: 'running', crashesInWindow: 0 });
  const backAt = Date.now();
  proxy.mend();

  const repaired = await shown.change(id, ({ cause }) => cause === 'repaired');
  expect(Date.parse(repaired.at)).toBeLessThan(backAt);
  expect(await shown.life(id)).toEqual([
    ['running', 'degraded', 'kill'],
    ['degraded', 'repairing', 'kill'],
    ['repairing', 'running', 'repaired'],
  ]);
  const crash = await shown.change(id, ({ cause, to }) => cause === 'kill' && to === 'degraded');
  expect(Date.parse(crash.at)).toBeGreaterThan(killedAt - 1_000);
  expect(Date.parse(crash.at)).toBeLessThan(backAt);
  expect(crash.crash).toEqual({ exitCode: 137, oomKilled: false, lastLines: [] });
  const { body: after } = await on.backend(user, 'GET', `/api/agents/${id}`);
  expect(after).toMatchObject({
    status: 'active',
    watchdog: { state: 'running', crashesInWindow: 1, repairAttempts: 1 },
  });
  // The supervisor controls the agent again.
  const stopped = await on.backend(user, 'POST', `/api/agents/${id}/stop?wait=60`);
  expect(stopped.body).toMatchObject({ operation: 'stop', status: 'succeeded' });
});
