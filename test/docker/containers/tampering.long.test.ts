import type Docker from 'dockerode';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  AGENT_ROLE,
  type AgentContainerSpec,
  containerName,
  LABEL,
} from '../../../src/docker/containers/container-spec.js';
import {
  DockerRefusedError,
  SeveralContainersError,
} from '../../../src/docker/containers/container-errors.js';
import { gatewayHealth } from '../../../src/docker/containers/gateway-probe.js';
import { ensureTestImage } from '../../agent-image/ensure-test-image.js';
import { testDocker } from '../../support/docker.js';
import { until } from '../../support/until.js';

const fixture = testDocker();
const { containers, docker, host } = fixture;
let image: string;

beforeAll(async () => {
  image = await ensureTestImage(docker);
});
afterAll(() => fixture.close());

async function ensure(spec: AgentContainerSpec) {
  await host.networks.ensure(spec);
  await host.volumes.ensure(spec, 'test');
  return containers.ensure(spec);
}

async function running() {
  const spec = await fixture.spec({ image });
  const { id } = await ensure(spec);
  await containers.start(spec.agentId);
  return { spec, id, name: containerName(spec.agentId), container: docker.getContainer(id) };
}

const isUp = ({ port }: AgentContainerSpec) =>
  until(async () => (await gatewayHealth(port, { timeoutMs: 500 })).healthy);
const statusOf = async (agentId: string) => (await containers.inspect(agentId))?.status;

/** Creates a container with the labels, or some of the labels, of another. */
async function copyOf(
  container: Docker.Container,
  { leavesOut = [], name }: { leavesOut?: readonly string[]; name?: string } = {},
) {
  const { Config: config } = await container.inspect();
  const labels = Object.entries(config.Labels).filter(([label]) => !leavesOut.includes(label));
  return docker.createContainer({
    ...(name !== undefined && { name }),
    Image: image,
    Labels: Object.fromEntries(labels),
    HostConfig: { NetworkMode: 'none', Init: true },
  });
}

const nameOf = async (container: Docker.Container) => (await container.inspect()).Name.slice(1);

describe('a renamed container', () => {
  it('a renamed container is stopped, started under its own name, and not recreated', async () => {
    const { container, id, name, spec } = await running();
    await container.rename({ name: `${name}-renamed` });
    expect(await containers.inspect(spec.agentId)).toMatchObject({ id, status: 'running' });
    expect(await containers.running()).toContain(spec.agentId);
    expect(await containers.list()).toContainEqual(expect.objectContaining({ id }));
    await containers.stop(spec.agentId, 1);
    expect(await statusOf(spec.agentId)).toBe('exited');
    expect(await ensure(spec)).toEqual({ id, created: false, staleSkills: [] });
    await containers.start(spec.agentId);
    await isUp(spec);
    expect(await nameOf(container)).toBe(name);
    await container.rename({ name: `${name}-renamed` });
    await containers.remove(spec.agentId);
    await expect(container.inspect()).rejects.toMatchObject({ statusCode: 404 });
  });

  it('a renamed container is found although another container has its name', async () => {
    const { container, id, name, spec } = await running();
    await container.rename({ name: `${name}-renamed` });
    const { labels: Labels } = fixture;
    const other = await docker.createContainer({ name, Image: image, Labels });
    await containers.stop(spec.agentId, 1);
    expect(await ensure(spec)).toEqual({ id, created: false, staleSkills: [] });
    await containers.start(spec.agentId);
    await isUp(spec);
    expect(await nameOf(container)).toBe(`${name}-renamed`);
    expect(await nameOf(other)).toBe(name);
  });

  it('a renamed container is found without a role, as an earlier release made it', async () => {
    const { container, name, spec } = await running();
    const earlier = await copyOf(container, { leavesOut: [LABEL.role] });
    await container.remove({ force: true });
    await earlier.start();
    expect(await containers.inspect(spec.agentId)).toMatchObject({ id: earlier.id });
    await containers.stop(spec.agentId, 0);
    expect(await statusOf(spec.agentId)).toBe('exited');
    expect(await ensure(spec)).toEqual({ id: earlier.id, created: false, staleSkills: [] });
    expect(await nameOf(earlier)).toBe(name);
  });

  it('the end of a renamed container is in the events', async () => {
    const { container, name, spec } = await running();
    const ending = new AbortController();
    const received: string[] = [];
    const following = (async () => {
      for await (const event of host.events(ending.signal)) {
        received.push(event.kind === 'death' ? event.agentId : event.kind);
      }
    })();
    await until(() => Promise.resolve(received.includes('connected')));
    await container.rename({ name: `${name}-renamed` });
    await container.kill();
    await until(() => Promise.resolve(received.includes(spec.agentId)));
    ending.abort();
    await following;
  });
});

it('recognizes a container of an earlier release only by its name', async () => {
  const spec = await fixture.spec({ image });
  const { id } = await docker.createContainer({
    name: containerName(spec.agentId),
    Image: image,
    Labels: {
      ...fixture.labels,
      [LABEL.agent]: spec.agentId,
      [LABEL.owner]: spec.userId,
      [LABEL.installation]: fixture.installation,
    },
  });
  expect(await containers.inspect(spec.agentId)).toMatchObject({ id });
  expect(await containers.list()).toContainEqual(expect.objectContaining({ id }));
  await containers.remove(spec.agentId);
  expect(await containers.inspect(spec.agentId)).toBeUndefined();
});

describe('a second container with the labels of an agent', () => {
  it('a second container with the labels of an agent is stopped with the agent, and removed when the agent starts', async () => {
    const { container, id, spec } = await running();
    const copy = await copyOf(container);
    await copy.start();
    expect(await containers.inspect(spec.agentId)).toMatchObject({ id });
    await containers.stop(spec.agentId, 0);
    expect((await copy.inspect()).State.Running).toBe(false);
    await containers.start(spec.agentId);
    await isUp(spec);
    await expect(copy.inspect()).rejects.toMatchObject({ statusCode: 404 });
    expect(await containers.inspect(spec.agentId)).toMatchObject({ id });
  });

  it('a second container with the labels of an agent is removed by reconciliation, unlike the container that an operation retains', async () => {
    const { container, spec } = await running();
    await containers.stop(spec.agentId, 0);
    await containers.retain(spec.agentId);
    await ensure(spec);
    const copy = await copyOf(container, { name: `copy-of-${spec.agentId}` });
    expect(await containers.removeStrays()).toEqual([`copy-of-${spec.agentId}`]);
    await expect(copy.inspect()).rejects.toMatchObject({ statusCode: 404 });
    await containers.restore(spec.agentId);
    expect((await containers.inspect(spec.agentId))?.id).toBe(container.id);
  });

  it('stops a start with an error if neither has the name of the agent', async () => {
    const { container, name, spec } = await running();
    await copyOf(container, { name: `${name}-copy` });
    await containers.stop(spec.agentId, 0);
    await container.rename({ name: `${name}-renamed` });
    for (const refused of [() => containers.start(spec.agentId), () => ensure(spec)]) {
      await expect(refused()).rejects.toThrow(SeveralContainersError);
      await expect(refused()).rejects.toThrow(`${name}-copy and ${name}-renamed`);
    }
    await containers.remove(spec.agentId);
    expect(await containers.inspect(spec.agentId)).toBeUndefined();
  });
});

describe('a container off its network', () => {
  it('a container off its network is back on its network when it starts', async () => {
    const { id, name, spec } = await running();
    await docker.getNetwork(name).disconnect({ Container: id });
    await containers.kill(spec.agentId);
    await containers.start(spec.agentId);
    await isUp(spec);
    expect(await containers.inspect(spec.agentId)).toMatchObject({ id });
  });

  it('a container off its network is connected while it runs', async () => {
    const { container, id, name, spec } = await running();
    await isUp(spec);
    await docker.getNetwork(name).disconnect({ Container: id });
    await docker.getNetwork('bridge').connect({ Container: id });
    await containers.start(spec.agentId);
    await isUp(spec);
    const { NetworkSettings: settings } = await container.inspect();
    expect(Object.keys(settings.Networks)).toEqual([name]);
  });

  it('a container off its network does not start if the network no longer exists, as after any other loss of a network', async () => {
    const { id, name, spec } = await running();
    await docker.getNetwork(name).disconnect({ Container: id });
    await containers.stop(spec.agentId, 0);
    await docker.getNetwork(name).remove();
    await expect(containers.start(spec.agentId)).rejects.toMatchObject({ statusCode: 404 });
    await expect(containers.start(spec.agentId)).rejects.toThrow(DockerRefusedError);
    await ensure(spec);
    await containers.start(spec.agentId);
    await isUp(spec);
  });
});

describe('an updated container', () => {
  it('an updated container has its restart policy after a stop, and its limits after a start', async () => {
    const { container, id, spec } = await running();
    const optionsOf = async () => {
      const { CpuShares, Memory, MemorySwap, PidsLimit, RestartPolicy } = (
        await container.inspect()
      ).HostConfig;
      return { CpuShares, Memory, MemorySwap, PidsLimit, policy: RestartPolicy?.Name };
    };
    const before = await optionsOf();
    const MIB = 1024 * 1024;
    await container.update({
      RestartPolicy: { Name: 'always' },
      Memory: 512 * MIB,
      MemorySwap: 600 * MIB,
      PidsLimit: 100,
      CpuShares: 2,
    });
    await containers.stop(spec.agentId, 1);
    expect(await optionsOf()).toEqual(before);
    await container.update({ RestartPolicy: { Name: 'unless-stopped' }, CpuShares: 2 });
    await containers.start(spec.agentId);
    expect(await optionsOf()).toEqual(before);
    await isUp(spec);
    expect(await containers.inspect(spec.agentId)).toMatchObject({ id });
  });

  it('an updated container is replaced if its update cannot be undone', async () => {
    const { container, id, spec } = await running();
    await container.update({ CpusetCpus: '0' });
    const next = await ensure(spec);
    expect(next).toMatchObject({ created: true });
    expect(next.id).not.toBe(id);
  });
});

it('resumes a paused container when it starts', async () => {
  const { container, id, spec } = await running();
  await container.pause();
  await containers.start(spec.agentId);
  await isUp(spec);
  expect(await containers.inspect(spec.agentId)).toMatchObject({ id, status: 'running' });
  await container.pause();
  await containers.stop(spec.agentId, 1);
  expect(await statusOf(spec.agentId)).toBe('exited');
});

it('marks the container of an agent by its role', async () => {
  const { container } = await running();
  expect((await container.inspect()).Config.Labels[LABEL.role]).toBe(AGENT_ROLE);
});
