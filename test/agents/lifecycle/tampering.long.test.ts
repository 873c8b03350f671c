import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { containerName } from '../../../src/docker/containers/container-spec.js';
import { putSchedules } from '../../../temporal/schedules.js';
import { reconcileHostId } from '../../../workflows/ids.js';
import { testPlatform, type TestPlatform, type TestUser } from '../../support/platform.js';
import { until } from '../../support/until.js';
import { shownBy, type Shown } from '../../support/watchdog.js';

let on: TestPlatform;
let user: TestUser;
let shown: Shown;

beforeAll(async () => {
  on = await testPlatform({
    env: { WATCHDOG_CHECK_INTERVAL: '2s', WATCHDOG_DEGRADED_CHECK_INTERVAL: '1s' },
  });
  user = await on.signUp('network');
  shown = shownBy(on, user);
});
afterAll(() => on?.close());

const containerOf = (id: string) => on.docker.getContainer(containerName(id));
const operate = async (id: string, action: string) => {
  const { body } = await on.backend(user, 'POST', `/api/agents/${id}/${action}?wait=60`);
  return body.status;
};
const statusOf = async (id: string) => (await on.containers.inspect(id))?.status;
const causesOf = async (id: string) => (await shown.life(id)).map(([, to, cause]) => [to, cause]);

async function answers(id: string): Promise<boolean> {
  const { port } = (await on.containers.inspect(id)) ?? {};
  return (await fetch(`http://127.0.0.1:${port}/healthz`).catch(() => undefined))?.ok === true;
}

const REPAIRED = [
  ['degraded', 'unhealthy'],
  ['repairing', 'unhealthy'],
  ['running', 'repaired'],
];

// Each repair takes 35 seconds.
describe.concurrent('a tampered container', () => {
  test('a renamed container stops and starts', async () => {
    const id = await on.runningAgent(user);
    await containerOf(id).rename({ name: `renamed-${id}` });
    expect(await operate(id, 'stop')).toBe('succeeded');
    expect(await statusOf(id)).toBe('exited');
    expect(await operate(id, 'start')).toBe('succeeded');
    expect(await answers(id)).toBe(true);
    expect((await containerOf(id).inspect()).Name).toBe(`/${containerName(id)}`);
  });

  test('a container disconnected from its network is repaired with its network', async () => {
    const id = await on.runningAgent(user);
    const before = (await containerOf(id).inspect()).Id;
    await on.docker.getNetwork(containerName(id)).disconnect({ Container: containerName(id) });
    await shown.change(id, ({ to }) => to === 'degraded');
    await shown.becomes(id, 'running');
    expect(await answers(id)).toBe(true);
    expect(await causesOf(id)).toEqual(REPAIRED);
    expect((await containerOf(id).inspect()).Id).toBe(before);
  });

  test('a container without its network stops and starts', async () => {
    const id = await on.runningAgent(user);
    const network = on.docker.getNetwork(containerName(id));
    expect(await operate(id, 'stop')).toBe('succeeded');
    await network.disconnect({ Container: containerName(id) });
    await network.remove();
    expect(await operate(id, 'start')).toBe('succeeded');
    expect(await answers(id)).toBe(true);
  });

  test('a container that Docker restarts by itself runs as made after its next stop and start', async () => {
    const id = await on.runningAgent(user);
    const { HostConfig: before } = await containerOf(id).inspect();
    const Memory = 512 * 1024 * 1024;
    const RestartPolicy = { Name: 'always' };
    await containerOf(id).update({ RestartPolicy, Memory, MemorySwap: Memory });
    await on.orderAgent(id, { exit: 3 });
    await until(() => answers(id));
    expect(await operate(id, 'stop')).toBe('succeeded');
    expect(await statusOf(id)).toBe('exited');
    expect(await operate(id, 'start')).toBe('succeeded');
    expect(await answers(id)).toBe(true);
    const { HostConfig: after } = await containerOf(id).inspect();
    expect(after).toEqual(before);
  });

  test('a paused container is repaired', async () => {
    const id = await on.runningAgent(user);
    await containerOf(id).pause();
    await shown.change(id, ({ to }) => to === 'degraded');
    await shown.becomes(id, 'running');
    expect(await answers(id)).toBe(true);
    expect(await causesOf(id)).toEqual(REPAIRED);
  });

  test('a removed container is recreated with its memory', async () => {
    const id = await on.runningAgent(user);
    const volumes = async () => (await on.containers.inspect(id))?.volumes;
    const before = await volumes();
    await containerOf(id).remove({ force: true });
    await shown.change(id, ({ to }) => to === 'degraded');
    await shown.becomes(id, 'running');
    expect(await answers(id)).toBe(true);
    expect(await volumes()).toEqual(before);
  });

  test('a container removed with its volume is not started without its memory', async () => {
    const id = await on.runningAgent(user);
    const [volume = ''] = (await on.containers.inspect(id))?.volumes ?? [];
    await containerOf(id).remove({ force: true });
    await on.docker.getVolume(volume).remove();
    await shown.becomes(id, 'crash_loop');
    const { body } = await on.backend(user, 'GET', `/api/agents/${id}`);
    expect(body).toMatchObject({
      status: 'error',
      statusReason: expect.stringContaining(`there is no volume ${volume}`),
    });
    expect(await on.resourcesOf(id)).not.toContain(`volume ${volume}`);
  });

  test('a container with a copy keeps running, and a pass of reconciliation removes the copy', async () => {
    const id = await on.runningAgent(user);
    const { Config: config, Id: own } = await containerOf(id).inspect();
    const copy = await on.docker.createContainer({
      Image: config.Image,
      Labels: config.Labels,
      HostConfig: { Init: true },
    });
    await copy.start();
    const { host } = on.settings.agents;
    await putSchedules(on.temporal.client, host);
    await until(async () => {
      const found = await copy.inspect().catch(() => undefined);
      return found === undefined;
    });
    await on.temporal.client.schedule.getHandle(reconcileHostId(host)).delete();
    expect(await on.containers.inspect(id)).toMatchObject({ id: own, status: 'running' });
    expect(await answers(id)).toBe(true);
  });

  test('a copy of a renamed container makes the start an error with both names', async () => {
    const id = await on.runningAgent(user);
    expect(await operate(id, 'stop')).toBe('succeeded');
    const { Config: config } = await containerOf(id).inspect();
    const copy = `copy-of-${id}`;
    await on.docker.createContainer({ name: copy, Image: config.Image, Labels: config.Labels });
    await containerOf(id).rename({ name: `renamed-${id}` });
    const { body } = await on.backend(user, 'POST', `/api/agents/${id}/start?wait=60`);
    expect(body).toMatchObject({
      status: 'failed',
      error: expect.stringContaining(`${copy} and renamed-${id} have the labels of one agent`),
    });
    await on.docker.getContainer(copy).remove();
    expect(await operate(id, 'start')).toBe('succeeded');
    expect(await answers(id)).toBe(true);
  });
});
