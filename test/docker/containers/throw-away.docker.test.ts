import { randomUUID } from 'node:crypto';
import { afterAll, expect, it } from 'vitest';
import { DockerClient } from '../../../src/docker/containers/docker-client.js';
import { removeLeftovers } from '../../../src/docker/containers/throw-away.js';
import { HelperContainers } from '../../../src/docker/egress/helper-containers.js';
import { ensureTestImage } from '../../agent-image/ensure-test-image.js';
import { testDocker } from '../../support/docker.js';

const fixture = testDocker();
const { docker, installation, labels } = fixture;
const client = new DockerClient({ dockerHost: process.env.DOCKER_HOST, installation, labels });

/** Milliseconds. Containers created in this file are younger. */
const HOUR = 3_600_000;

afterAll(() => fixture.close());

/** Leaves a container created but never started, as an engine that died in between does. */
async function leave(more: Readonly<Record<string, string>>): Promise<string> {
  const Image = await ensureTestImage(docker);
  const { id } = await docker.createContainer({ Image, Labels: { ...labels, ...more } });
  return id;
}

async function isThere(id: string): Promise<boolean> {
  const filters = { id: [id] };
  return (await docker.listContainers({ all: true, filters })).length === 1;
}

it('removes old containers with the label, in every state, and keeps all others', async () => {
  const [label, other] = [`left-${randomUUID()}`, `left-${randomUUID()}`];
  const [left, running, kept] = [
    await leave({ [label]: '' }),
    await leave({ [label]: '' }),
    await leave({ [other]: '' }),
  ];
  await docker.getContainer(running).start();
  await removeLeftovers(client, { label: [label] }, HOUR);
  expect([await isThere(left), await isThere(running)]).toEqual([true, true]);
  await removeLeftovers(client, { label: [label], status: ['created'] }, 0);
  expect([await isThere(left), await isThere(running)]).toEqual([false, true]);
  await removeLeftovers(client, { label: [label] }, 0);
  expect([await isThere(running), await isThere(kept)]).toEqual([false, true]);
});

it('removes leftover egress helpers and networks, unless another process may still use them', async () => {
  const helpers = new HelperContainers(client);
  const left = await leave(helpers.labels);
  const Name = `left-${randomUUID()}`;
  const { subnet: Subnet } = await fixture.spec();
  const IPAM = { Driver: 'default', Config: [{ Subnet }] };
  await docker.createNetwork({ Name, Labels: helpers.labels, Internal: true, IPAM });
  const networks = async () => (await docker.listNetworks({ filters: { name: [Name] } })).length;
  await helpers.removeLeftovers();
  expect([await isThere(left), await networks()]).toEqual([true, 1]);
  await helpers.removeLeftovers(0);
  expect([await isThere(left), await networks()]).toEqual([false, 0]);
});
