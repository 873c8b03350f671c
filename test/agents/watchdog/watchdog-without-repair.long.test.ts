import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { containerName } from '../../../src/docker/containers/container-spec.js';
import { until } from '../../support/until.js';
import { testPlatform, type TestPlatform, type TestUser } from '../../support/platform.js';
import { phaseBecomes, shownBy, type Shown } from '../../support/watchdog.js';

let on: TestPlatform;
let user: TestUser;
let shown: Shown;

beforeAll(async () => {
  on = await testPlatform({
    env: {
      WATCHDOG_CHECK_INTERVAL: '500ms',
      WATCHDOG_DEGRADED_CHECK_INTERVAL: '500ms',
      WATCHDOG_AUTO_REPAIR: 'false',
    },
  });
  user = await on.signUp('network');
  shown = shownBy(on, user);
});
afterAll(() => on?.close());

const agentOf = async (id: string) => (await on.web(user, 'GET', `/api/agents/${id}`)).body.agent;

/** Waits until the agent has been observed this many more times. */
async function observedTimes(id: string, times: number): Promise<void> {
  const seen = new Set<string>([(await agentOf(id)).observedAt]);
  await until(async () => {
    seen.add((await agentOf(id)).observedAt);
    return seen.size > times;
  });
}

describe.concurrent('with automatic repair off', () => {
  test('an agent with an unhealthy gateway is degraded until it is healthy again', async () => {
    const id = await on.runningAgent(user);
    await on.orderAgent(id, { mode: 'unhealthy' });
    const change = await shown.change(id, ({ to }) => to === 'degraded');
    expect(change).toMatchObject({
      from: 'running',
      cause: 'unhealthy',
      crash: null,
      reason: 'The gateway answers its health check with 503',
    });
    await observedTimes(id, 4);
    expect(await agentOf(id)).toMatchObject({
      status: 'error',
      statusReason: change.reason,
      watchdog: { state: 'degraded', crashesInWindow: 0 },
    });
    await phaseBecomes(on, id, 'degraded');
    await on.orderAgent(id, { mode: 'healthy' });
    await shown.becomes(id, 'running');
    expect(await shown.life(id)).toEqual([
      ['running', 'degraded', 'unhealthy'],
      ['degraded', 'running', 'healthy'],
    ]);
    expect(await agentOf(id)).toMatchObject({ status: 'running', statusReason: null });
  });

  test('an agent with a hanging gateway is degraded until a user restarts it', async () => {
    const id = await on.runningAgent(user);
    await on.orderAgent(id, { mode: 'hang' });
    expect(await shown.change(id, ({ to }) => to === 'degraded')).toMatchObject({
      from: 'running',
      cause: 'unhealthy',
      crash: null,
      reason: expect.stringMatching(/^The gateway does not answer its health check: /),
    });
    const restart = await on.web(user, 'POST', `/api/agents/${id}/restart?wait=60`);
    expect(restart.body).toMatchObject({ status: 'succeeded', error: null });
    expect(await shown.life(id)).toEqual([
      ['running', 'degraded', 'unhealthy'],
      ['degraded', 'starting', 'operation'],
      ['starting', 'running', 'healthy'],
    ]);
  });

  test('an agent whose container is killed stays stopped until a user starts it', async () => {
    const id = await on.runningAgent(user);
    const container = on.docker.getContainer(containerName(id));
    await container.kill();
    const crash = await shown.change(id, (change) => change.crash !== null);
    expect(crash).toMatchObject({ to: 'degraded', cause: 'kill', crash: { exitCode: 137 } });
    await observedTimes(id, 4);
    expect((await on.containers.inspect(id))?.status).toBe('exited');
    expect(await agentOf(id)).toMatchObject({
      status: 'error',
      desired: 'running',
      statusReason: crash.reason,
      watchdog: { state: 'degraded', crashesInWindow: 1, repairAttempts: 0, lastRepair: null },
    });
    await container.start();
    await shown.becomes(id, 'running');
    expect((await shown.life(id)).at(-1)).toEqual(['degraded', 'running', 'healthy']);
    expect((await agentOf(id)).watchdog).toMatchObject({ crashesInWindow: 1 });
  });
});
