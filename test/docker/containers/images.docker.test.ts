import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ImageUnavailableError } from '../../../src/docker/containers/container-errors.js';
import { DockerHost } from '../../../src/docker/containers/docker-host.js';
import { testDocker } from '../../support/docker.js';
import { testRegistry, type TestRegistry } from '../../support/registry.js';

const fixture = testDocker();
const { docker, host } = fixture;
const LATER = { now: Date.now() + 25 * 60 * 60_000 };
let registry: TestRegistry;

beforeAll(async () => {
  registry = await testRegistry();
});
afterAll(async () => {
  await host.images.removeUnused(new Set(), LATER);
  await fixture.close();
  await registry?.close();
});

const has = async (image: string) => (await host.images.find(image)) !== undefined;

async function published(repository: string, tag: string) {
  const digest = await registry.publish(repository, tag);
  const named = `${registry.host}/${repository}`;
  return { image: `${named}:${tag}`, pinned: `${named}:${tag}@${digest}` };
}

describe('image', () => {
  test('an image without a registry in its name is not pulled', { tags: 'attack' }, async () => {
    const asked: string[] = [];
    const engine = createServer((request, response) => {
      asked.push(`${request.method} ${request.url}`);
      response.writeHead(404, { 'content-type': 'application/json' }).end('{"message":"no"}');
    }).listen(0, '127.0.0.1');
    await once(engine, 'listening');
    const { port } = engine.address() as AddressInfo;
    const { images } = new DockerHost({ dockerHost: `tcp://127.0.0.1:${port}` });
    const pulls = () => asked.filter((line) => line.startsWith('POST'));
    for (const image of [
      'agent-platform/openclaw:1',
      'agent',
      'agent-platform.invalid/openclaw:1',
    ]) {
      await expect(images.ensure(image)).rejects.toBeInstanceOf(ImageUnavailableError);
    }
    expect(pulls()).toEqual([]);
    await expect(images.ensure('registry.example/agent:1')).rejects.toThrow(ImageUnavailableError);
    expect(pulls()).toHaveLength(1);
    engine.close();
  });

  test(
    "an image with a digest stays the same when its registry's tag changes",
    { tags: 'attack' },
    async () => {
      const before = await published('pinned', '1');
      const after = await published('pinned', '1');
      await host.images.ensure(before.pinned);
      await host.images.ensure(after.image);
      const idOf = async (image: string) => (await docker.getImage(image).inspect()).Id;
      expect(await idOf(before.pinned)).not.toBe(await idOf(after.image));
      const forged = `${before.image}@sha256:${'0'.repeat(64)}`;
      await expect(host.images.ensure(forged)).rejects.toThrow(ImageUnavailableError);
    },
  );
});

describe('pulled image', () => {
  test('a pulled image is removed if it is unwanted, was so for a day, and has no container', async () => {
    const unused = await published('unused', '1');
    const wanted = await published('wanted', '1');
    const inUse = await published('in-use', '1');
    for (const { pinned } of [unused, wanted, inUse]) await host.images.ensure(pinned);
    const container = await docker.createContainer({ Image: inUse.pinned, Labels: fixture.labels });

    expect(await host.images.removeUnused(new Set())).toEqual([]);
    const removed = await host.images.removeUnused(new Set([wanted.pinned]), LATER);
    expect(removed).toContain(unused.pinned.replace(':1@', '@'));
    expect(await Promise.all([unused, wanted, inUse].map(({ pinned }) => has(pinned)))).toEqual([
      false,
      true,
      true,
    ]);
    await container.remove();
    await host.images.removeUnused(new Set(), LATER);
    expect(await Promise.all([wanted, inUse].map(({ pinned }) => has(pinned)))).toEqual([
      false,
      false,
    ]);
    const left = await docker.listImages({ all: true });
    const names = left.flatMap(({ RepoTags: tags }) => tags ?? []);
    expect(names.filter((name) => name.includes(fixture.installation))).toEqual([]);
  });

  test('a pulled image is kept again once it is requested again', async () => {
    const { image } = await published('again', '1');
    await host.images.ensure(image);
    const unwantedMs = 60_000;
    const now = Date.now() + unwantedMs;
    await host.images.ensure(image);
    expect(await host.images.removeUnused(new Set(), { unwantedMs, now })).not.toContain(image);
    expect(await host.images.removeUnused(new Set(), LATER)).toContain(image);
  });

  test('an image pulled or tagged by another installation is kept', async () => {
    const [theirs, both] = [await published('theirs', '1'), await published('both', '1')];
    const others = new DockerHost({
      dockerHost: process.env.DOCKER_HOST,
      installation: `${fixture.installation}-other`,
    });
    await others.images.ensure(theirs.image);
    await others.images.ensure(both.image);
    await host.images.ensure(both.image);
    await docker.getImage(theirs.image).tag({ repo: 'kept-by-hand', tag: fixture.installation });

    await host.images.removeUnused(new Set(), LATER);
    expect(await has(theirs.image)).toBe(true);
    await others.images.removeUnused(new Set(), LATER);
    expect(await has(theirs.image)).toBe(false);
    expect(await has(`kept-by-hand:${fixture.installation}`)).toBe(true);
    await docker.getImage(`kept-by-hand:${fixture.installation}`).remove();
  });
});
