import { afterAll, beforeAll, expect, test } from 'vitest';
import { containerName } from '../../src/docker/containers/container-spec.js';
import { ensureTestImage } from '../agent-image/ensure-test-image.js';
import { until } from '../support/until.js';
import { testPlatform, type TestPlatform } from '../support/platform.js';
import { DockerHost, hostsPossible } from './docker-host.js';

const WAIT_MS = 90_000;

let platform: TestPlatform;
let one: DockerHost;
let two: DockerHost;
const hosts: DockerHost[] = [];

beforeAll(async () => {
  if (!hostsPossible) return;
  // The API's own host accepts no agents.
  platform = await testPlatform({ workers: false, env: { AGENT_HOST_CAPACITY: '0' } });
  for (const id of ['one', 'two']) hosts.push(await DockerHost.make(id));
  await Promise.all(hosts.map(equip));
  [one, two] = hosts as [DockerHost, DockerHost]; // created in the loop above
});
afterAll(async () => {
  const ends = await Promise.allSettled(hosts.map((host) => host.close()));
  await platform?.close();
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
});

/** Starts a host's engine and worker. Both hosts use the same ports and subnets and differ only by name. */
async function equip(host: DockerHost): Promise<void> {
  await host.startEngine();
  const { settings, temporal } = platform;
  const reached = await host.reach({ database: settings.database.url, temporal: temporal.address });
  await host.startWorker({
    DATABASE_URL: reached.database,
    TEMPORAL_ADDRESS: reached.temporal,
    TEMPORAL_NAMESPACE: temporal.namespace,
    ENCRYPTION_KEY: settings.secrets.keys[0].key.toString('base64'),
    AGENT_HOST_CAPACITY: '4',
    AGENT_EGRESS: 'open',
    AGENT_PORT_RANGE: '19100-19199',
    AGENT_SUBNET_POOL: '10.231.0.0/16',
    AGENT_RUNTIME_IMAGE: await ensureTestImage(host.docker),
    WATCHDOG_CHECK_INTERVAL: '2s',
    HOST_LISTEN: `${reached.address}:3003`,
  });
  await becomes(host.id, 'ready');
}

async function stateOf(id: string): Promise<{ status: string; agents: number; free: number }> {
  const { body } = await platform.backend(undefined, 'GET', '/api/hosts');
  return body.find((host: { id: string }) => host.id === id) ?? { status: 'unknown' };
}

const becomes = (id: string, status: string) =>
  until(async () => (await stateOf(id)).status === status, WAIT_MS);

/** Creates an agent, and returns its id and host. */
async function create(): Promise<{ id: string; host: string }> {
  const name = `agent ${(created += 1)}`;
  const made = await platform.backend(undefined, 'POST', '/api/agents', { body: { name } });
  expect([made.status, made.body.error]).toEqual([201, undefined]);
  const { body } = await platform.backend(undefined, 'GET', `/api/agents/${made.body.id}`);
  return { id: body.id, host: body.host };
}
let created = 0;

const isActive = async (id: string) =>
  (await platform.backend(undefined, 'GET', `/api/agents/${id}`)).body.status === 'active';

/** Waits until the agent is active and its container on this host runs. */
async function runs(host: DockerHost, id: string): Promise<void> {
  await until(async () => (await isActive(id)) && (await run(host, id))?.Running, WAIT_MS).catch(
    (cause: unknown) => {
      throw new Error(`${id} does not run on ${host.id}:\n${host.workerLog}`, { cause });
    },
  );
}

/** Returns the state of the agent's container; undefined without a container or an engine. */
const run = (host: DockerHost, id: string) =>
  host.docker
    .getContainer(containerName(id))
    .inspect()
    .then(
      ({ State: state }) => state,
      () => undefined,
    );

const idsOf = (agents: readonly { id: string; host: string }[], host: DockerHost) =>
  agents.flatMap((agent) => (agent.host === host.id ? [agent.id] : []));

test.runIf(hostsPossible)(
  'agents run on two hosts, and one host is unaffected when an engine or worker of another dies',
  async () => {
    // Agents are spread by free capacity, with the same ports on both hosts.
    const first = [await create(), await create(), await create(), await create()];
    expect(first.map(({ host }) => host)).toEqual(['one', 'two', 'one', 'two']);
    const [onOne, onTwo] = [idsOf(first, one), idsOf(first, two)];
    await Promise.all(onOne.map((id) => runs(one, id)));
    await Promise.all(onTwo.map((id) => runs(two, id)));
    for (const host of hosts) {
      const containers = await host.docker.listContainers();
      expect(
        containers.flatMap(({ Ports }) => Ports.map((port) => port.PublicPort)).sort(),
      ).toEqual([19_100, 19_101]);
    }
    // Logs are read here although no host's engine can be reached.
    for (const { id } of first) {
      const log = await platform.backend(undefined, 'GET', `/api/logs/${id}/history`);
      expect([log.status, log.body.lines?.length > 0]).toEqual([200, true]);
      const stats = await platform.backend(undefined, 'GET', `/api/agents/${id}/stats`);
      expect(stats.body.container?.memoryBytes).toBeGreaterThan(0);
    }

    // A second machine with the first one's name is refused with a message.
    const second = await two.refusedWorker({ AGENT_HOST: 'one' });
    expect(second.log).toContain('The host name "one" belongs to another Docker engine');
    expect(second.how).toBe('ended with code 1');
    expect(await stateOf('one')).toMatchObject({ status: 'ready' });

    const startsOn = (host: DockerHost, ids: readonly string[]) =>
      Promise.all(ids.map(async (id) => (await run(host, id))?.StartedAt));
    const [startsOnOne, startsOnTwo] = [await startsOn(one, onOne), await startsOn(two, onTwo)];

    // After an engine's death, its host gets no new agents, and agents of the second host run on.
    await one.killEngine();
    await becomes('one', 'engine_unavailable');
    const concurrent = await create();
    expect(concurrent.host).toBe('two');
    await runs(two, concurrent.id);
    await one.startEngine();
    await becomes('one', 'ready');
    await until(async () => {
      const starts = await startsOn(one, onOne);
      return starts.every((start, n) => start !== undefined && start !== startsOnOne[n]);
    }, WAIT_MS);
    await Promise.all(onOne.map((id) => runs(one, id)));
    expect(await startsOn(two, onTwo)).toEqual(startsOnTwo);

    // After a worker's death, its host is silent, its agents run on, and new agents use the second host.
    const stayedOnOne = await startsOn(one, onOne);
    await one.killWorker();
    await platform.asOwner(`UPDATE hosts SET seen_at = seen_at - interval '45 s' WHERE id = 'one'`);
    await becomes('one', 'silent');
    expect(await stateOf('one')).toMatchObject({ agents: 2, free: 2 });
    const last = await create();
    expect(last.host).toBe('two');
    await runs(two, last.id);
    const refused = await platform.backend(undefined, 'POST', '/api/agents', {
      body: { name: 'one too many' },
    });
    expect(refused.status).toBe(503);
    expect(await startsOn(one, onOne)).toEqual(stayedOnOne);

    // The restarted worker accepts agents again.
    await one.startWorker();
    await becomes('one', 'ready');
    const back = await create();
    expect(back.host).toBe('one');
    await runs(one, back.id);
    expect(await startsOn(one, onOne)).toEqual(stayedOnOne);
    expect(await startsOn(two, onTwo)).toEqual(startsOnTwo);

    // Removed agents leave nothing on either host.
    for (const { id } of [...first, concurrent, last, back]) {
      await platform.backend(undefined, 'DELETE', `/api/agents/${id}`);
    }
    for (const host of hosts) {
      await until(async () => (await stateOf(host.id)).agents === 0, WAIT_MS);
      expect(await host.docker.listContainers({ all: true })).toEqual([]);
      expect((await host.docker.listVolumes()).Volumes ?? []).toEqual([]);
    }
  },
);
