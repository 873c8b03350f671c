import { randomUUID } from 'node:crypto';
import { afterAll, expect, it } from 'vitest';
import { DockerClient } from '../../src/containers/docker-client.js';
import { removeLeftovers } from '../../src/containers/throw-away.js';
import { ensureTestImage } from '../agent-image/ensure-test-image.js';
import { testDocker } from '../support/docker.js';

const fixture = testDocker();
const { docker } = fixture;
const client = new DockerClient({ dockerHost: process.env.DOCKER_HOST });

afterAll(() => fixture.close());

/** One that was made and never started, as where the engine died in between. */
async function leave(labels: Readonly<Record<string, string>>): Promise<string> {
  const Image = await ensureTestImage(docker);
  const { id } = await docker.createContainer({ Image, Labels: { ...fixture.labels, ...labels } });
  return id;
}

const isThere = async (id: string) => {
  const filters = { id: [id] };
  return (await docker.listContainers({ all: true, filters })).length === 1;
};

it('takes away what has the label, in every state, and nothing else', async () => {
  const [label, other] = [`left-${randomUUID()}`, `left-${randomUUID()}`];
  const [left, kept] = [await leave({ [label]: '' }), await leave({ [other]: '' })];
  await removeLeftovers(client, { label: [label] }, 60_000);
  expect(await isThere(left)).toBe(true); // too young
  await removeLeftovers(client, { label: [label] });
  expect([await isThere(left), await isThere(kept)]).toEqual([false, true]);
});
