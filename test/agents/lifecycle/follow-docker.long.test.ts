import { afterAll, beforeAll, expect, test } from 'vitest';
import { containerName } from '../../../src/docker/containers/container-spec.js';
import { until } from '../../support/until.js';
import { testPlatform, type TestPlatform, type TestUser } from '../../support/platform.js';
import { endedBySignal } from '../../support/signals.js';

let on: TestPlatform;
let user: TestUser;

beforeAll(async () => {
  on = await testPlatform();
  user = await on.signUp('network');
});
afterAll(() => on?.close());

const reported = (agentId: string, signal: string) =>
  endedBySignal(on.temporal.client, agentId, signal);
const firstNotified = (agentId: string, signal: string) =>
  until(async () => (await reported(agentId, signal))[0]);

test("notifies the supervisor of its container's end and the cause", async () => {
  const [killed, exited] = await Promise.all([on.runningAgent(user), on.runningAgent(user)]);
  const before = await on.containers.inspect(killed);
  await on.docker.getContainer(containerName(killed)).kill();
  await on.orderAgent(exited, { exit: 3 });
  expect(await firstNotified(killed, 'containerEnded')).toEqual({
    containerId: before?.id,
    cause: 'kill',
    exitCode: 137,
    at: expect.any(Number),
  });
  expect(await firstNotified(exited, 'containerEnded')).toMatchObject({
    cause: 'exit',
    exitCode: 3,
  });
});

test('a starting worker notifies the supervisors of stopped agents that should run, and no others', async () => {
  const [up, down, stopped] = await Promise.all(
    Array.from({ length: 3 }, () => on.runningAgent(user)),
  );
  await on.backend(user, 'POST', `/api/agents/${stopped}/stop?wait=30`);
  await on.stopWorkers();
  await on.docker.getContainer(containerName(down ?? '')).kill();
  await on.startWorkers();
  expect(await firstNotified(down ?? '', 'dockerReturned')).toEqual({ awayFrom: 0 });
  expect(await reported(up ?? '', 'dockerReturned')).toEqual([]);
  expect(await reported(stopped ?? '', 'dockerReturned')).toEqual([]);
});

test('recreates a container that was removed while no worker ran', async () => {
  const removed = await on.runningAgent(user);
  await on.stopWorkers();
  await on.docker.getContainer(containerName(removed)).remove({ force: true });
  await on.startWorkers();
  const state = await until(async () => {
    const found = await on.containers.inspect(removed);
    return found?.status === 'running' ? found : undefined;
  });
  expect(state.status).toBe('running');
});
