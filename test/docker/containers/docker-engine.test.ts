import type Docker from 'dockerode';
import { expect, test } from 'vitest';
import { DockerClient } from '../../../src/docker/containers/docker-client.js';
import { readEngine } from '../../../src/docker/containers/docker-engine.js';

class Says extends DockerClient {
  constructor(readonly info: object) {
    super({ dockerHost: 'unix:///nowhere' });
  }

  override call<T>(work: (docker: Docker, bound: never) => Promise<T>): Promise<T> {
    const docker: Pick<Docker, 'info'> = { info: () => Promise.resolve(this.info) };
    return work(docker as Docker, undefined as never); // the test calls nothing else
  }
}

const INFO = { ID: 'A', MemTotal: 1, KernelVersion: 'none', DockerRootDir: '/var/lib/docker' };

test('an engine with user namespaces has its first ids from the name of its folder', async () => {
  const remapped = {
    ...INFO,
    SecurityOptions: ['name=seccomp,profile=default', 'name=userns'],
    DockerRootDir: '/srv/1.2/docker/231072.100000',
  };
  expect((await readEngine(new Says(remapped))).usersFrom).toEqual({ uid: 231_072, gid: 100_000 });
});

test.each([
  ['1', 'another kernel', true],
  ['2', 'another kernel', false],
])(
  'control groups of version %s on %s support disk weights: %s',
  async (CgroupVersion, kernel, weighs) => {
    const engine = await readEngine(new Says({ ...INFO, CgroupVersion, KernelVersion: kernel }));
    expect(engine.weighsDisks).toBe(weighs);
  },
);

test.each([
  [{ SecurityOptions: ['name=seccomp,profile=default', 'name=cgroupns'] }],
  [{ SecurityOptions: ['name=rootless'], DockerRootDir: '/home/me/.local/share/docker' }],
  [{ SecurityOptions: null }],
  [{}],
])('an engine without user namespaces has no first ids: %j', async (says) => {
  expect((await readEngine(new Says({ ...INFO, ...says }))).usersFrom).toBe(undefined);
});
