import Docker from 'dockerode';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import {
  type AgentContainerSpec,
  containerName,
  STATE_DIRECTORY,
} from '../../../src/docker/containers/container-spec.js';
import {
  DiskLowError,
  DockerUnavailableError,
  ForeignContainerError,
  MemoryMissingError,
  VolumeMissingError,
  VolumeTakenError,
  VolumeTooLargeError,
} from '../../../src/docker/containers/container-errors.js';
import type { DiskLimits } from '../../../src/docker/containers/disk-limits.js';
import { DockerHost } from '../../../src/docker/containers/docker-host.js';
import { containerOptions } from '../../../src/docker/containers/container-profile.js';
import { ensureTestImage } from '../../agent-image/ensure-test-image.js';
import { runInContainer } from '../../support/run-in-container.js';
import { testDocker } from '../../support/docker.js';
import { until } from '../../support/until.js';

const fixture = testDocker();
const { containers, docker, host } = fixture;
let image: string;

beforeAll(async () => {
  image = await ensureTestImage(docker);
});
afterAll(() => fixture.close());

async function running(spec: AgentContainerSpec): Promise<AgentContainerSpec> {
  await host.networks.ensure(spec);
  await host.volumes.ensure(spec, 'test');
  await containers.ensure(spec);
  await containers.start(spec.agentId);
  return spec;
}

const run = (agentId: string, code: string) => runInContainer(docker, containerName(agentId), code);

/** Replaces the agent: retains its container and copies its memory to the next volume. */
async function replaced(spec: AgentContainerSpec): Promise<AgentContainerSpec> {
  const next = { ...spec, volume: `${containerName(spec.agentId)}-next` };
  await containers.stop(spec.agentId, 1);
  await containers.retain(spec.agentId);
  await host.volumes.copy(next, { ...spec, volume: containerName(spec.agentId) }, 'test');
  return running(next);
}

async function namesOf(agentId: string): Promise<string[]> {
  const filters = { label: Object.entries(fixture.labels).map((pair) => pair.join('=')) };
  const [found, { Volumes: volumes }] = await Promise.all([
    docker.listContainers({ all: true, filters }),
    docker.listVolumes({ filters: JSON.stringify(filters) }),
  ]);
  return [
    ...found.flatMap(({ Names }) => Names.map((name) => `container ${name.slice(1)}`)),
    ...volumes.map(({ Name }) => `volume ${Name}`),
  ]
    .filter((name) => name.includes(agentId))
    .sort();
}

/** Lists the state as a container sees it: type, owner, mode, time, link and content. */
const LISTING = `
  const fs = require('fs');
  const walk = (path) => {
    const stat = fs.lstatSync(path);
    const { mode, uid, gid, mtimeMs } = stat;
    const facts = [path, mode, uid, gid, Math.floor(mtimeMs / 1000)];
    if (stat.isSymbolicLink()) return [[...facts, fs.readlinkSync(path)].join(' ')];
    if (stat.isFile()) return [[...facts, stat.nlink, fs.readFileSync(path, 'utf8')].join(' ')];
    const inside = fs.readdirSync(path).sort().flatMap((name) => walk(path + '/' + name));
    return [facts.join(' '), ...inside];
  };
  process.stdout.write(walk('${STATE_DIRECTORY}').join('\\n'));
`;

const FILL = `
  const fs = require('fs');
  process.chdir('${STATE_DIRECTORY}');
  fs.mkdirSync('deep/er', { recursive: true, mode: 0o750 });
  fs.writeFileSync('deep/er/söme', 'kept', { mode: 0o640 });
  fs.writeFileSync('run.sh', '#!', { mode: 0o711 });
  fs.writeFileSync('.hidden', '');
  fs.linkSync('run.sh', 'deep/hard');
  fs.symlinkSync('er/söme', 'deep/soft');
  fs.symlinkSync('/nowhere', 'dangling');
  fs.utimesSync('run.sh', 1e9, 1e9);
  fs.utimesSync('deep/er', 1.1e9, 1.1e9);
  fs.chmodSync('.', 0o700);
`;

const LARGE_BYTES = 256 * 1024 * 1024;

const WRITE_LARGE = `
  const fs = require('fs');
  const file = fs.openSync('${STATE_DIRECTORY}/large', 'w');
  const part = require('crypto').randomBytes(1024 * 1024);
  for (let written = 0; written < ${LARGE_BYTES}; written += part.length) {
    part.writeUInt32LE(written);
    fs.writeSync(file, part);
  }
`;

const SUM_LARGE = `
  const sum = require('crypto').createHash('sha1');
  require('fs').createReadStream('${STATE_DIRECTORY}/large').pipe(sum)
    .on('finish', () => process.stdout.write(sum.digest('hex')));
`;

it('copies a volume with content, owners, modes, times and links', async () => {
  const spec = await running(await fixture.spec({ image, files: { 'a/config.json': '{}' } }));
  await run(spec.agentId, FILL);
  const before = await run(spec.agentId, LISTING);
  expect(before).toContain('kept');
  await replaced({ ...spec, files: {} });
  expect(await run(spec.agentId, LISTING)).toBe(before);
  const write = `fs.writeFileSync('${STATE_DIRECTORY}/deep/er/new', 'x')`;
  expect(await run(spec.agentId, `const fs = require('fs'); ${write}`)).toBe('');
});

it('copies an empty volume to one that the runtime can write to', async () => {
  const spec = await fixture.spec({ image });
  await host.volumes.ensure(spec, 'test');
  await replaced(spec);
  expect(await run(spec.agentId, LISTING)).toMatch(/^\/home\/node \d+ 1000 1000 \d+$/);
});

it('copies again after a copy was aborted, and holds little of it in memory', async () => {
  const spec = await running(await fixture.spec({ image }));
  await run(spec.agentId, WRITE_LARGE);
  const sum = await run(spec.agentId, SUM_LARGE);
  await containers.stop(spec.agentId, 1);
  await containers.retain(spec.agentId);
  const next = { ...spec, volume: `${containerName(spec.agentId)}-next` };

  const cut = new AbortController();
  const copying = host.volumes.copy(
    next,
    { ...spec, volume: containerName(spec.agentId) },
    'test',
    cut.signal,
  );
  const copier = `container ${containerName(spec.agentId)}-copy-to`;
  await until(async () => (await namesOf(spec.agentId)).includes(copier));
  cut.abort();
  await expect(copying).rejects.toHaveProperty('name', 'AbortError');

  let held = 0;
  const watch = setInterval(() => {
    held = Math.max(held, process.memoryUsage().arrayBuffers);
  }, 5);
  await host.volumes.copy(next, { ...spec, volume: containerName(spec.agentId) }, 'test');
  clearInterval(watch);
  // Uncollected buffers count as held: Node 24 leaves a third of the bytes uncollected.
  expect(held).toBeLessThan(LARGE_BYTES / 2);
  await running(next);
  expect(await run(spec.agentId, SUM_LARGE)).toBe(sum);
});

it('restores the previous container and volume, however often it is called', async () => {
  const spec = await running(await fixture.spec({ image }));
  const before = await containers.inspect(spec.agentId);
  await run(spec.agentId, `require('fs').writeFileSync('${STATE_DIRECTORY}/mine', 'old')`);
  const next = await replaced(spec);
  await run(spec.agentId, `require('fs').writeFileSync('${STATE_DIRECTORY}/mine', 'new')`);

  await containers.restore(spec.agentId);
  await containers.restore(spec.agentId);
  const { id } = await containers.ensure(spec);
  expect(id).toBe(before?.id);
  await containers.start(spec.agentId);
  const read = `process.stdout.write(require('fs').readFileSync('${STATE_DIRECTORY}/mine'))`;
  expect(await run(spec.agentId, read)).toBe('old');

  const name = containerName(spec.agentId);
  await host.volumes.remove(spec.agentId, [{ name: `${name}-next`, madeBy: 'test' }]);
  expect(await namesOf(spec.agentId)).toEqual([`container ${name}`, `volume ${name}`]);
  await expect(
    host.volumes.copy(spec, { ...spec, volume: next.volume ?? '' }, 'test'),
  ).rejects.toBeInstanceOf(VolumeMissingError);
});

it('retains a container once, however often it is called', async () => {
  const spec = await running(await fixture.spec({ image }));
  const before = await containers.inspect(spec.agentId);
  await containers.retain(spec.agentId);
  await containers.retain(spec.agentId);
  expect(await containers.inspect(spec.agentId)).toBeUndefined();
  await containers.restore(spec.agentId);
  expect((await containers.inspect(spec.agentId))?.id).toBe(before?.id);
});

it('lists an agent once while it is being replaced', async () => {
  const spec = await running(await fixture.spec({ image }));
  await replaced(spec);
  const listed = (await containers.list()).filter(({ agentId }) => agentId === spec.agentId);
  expect(listed.map(({ status }) => status)).toEqual(['running']);
});

it('removes all resources of an agent in the middle of a replacement', async () => {
  const spec = await running(await fixture.spec({ image }));
  await replaced(spec);
  await host.volumes.make({ ...spec, volume: `${containerName(spec.agentId)}-archive` }, 'test');
  for (let time = 1; time <= 2; time++) {
    await containers.remove(spec.agentId);
    await host.networks.remove(spec.agentId);
    await host.volumes.remove(spec.agentId, await host.volumes.list(spec.agentId));
  }
  expect(await namesOf(spec.agentId)).toEqual([]);
});

it('refuses and keeps foreign containers and volumes that use its names', async () => {
  const spec = await running(await fixture.spec({ image }));
  const Labels = fixture.labels;
  const name = containerName(spec.agentId);
  const aside = await docker.createContainer({ name: `${name}-previous`, Image: image, Labels });
  const copier = await docker.createContainer({ name: `${name}-copy-to`, Image: image, Labels });
  await docker.createVolume({ Name: `${name}-next`, Labels });
  const next = { ...spec, volume: `${name}-next` };
  for (const refused of [
    () => containers.retain(spec.agentId),
    () => containers.restore(spec.agentId),
    () => host.volumes.make(next, 'test'),
    () => host.volumes.copy(next, { ...spec, volume: name }, 'test'),
    () =>
      host.volumes.copy(
        { ...spec, volume: `${name}-other` },
        { ...spec, volume: `${name}-next` },
        'test',
      ),
    () => host.volumes.make({ ...spec, volume: `${name}-next` }, 'test'),
  ]) {
    await expect(refused()).rejects.toBeInstanceOf(ForeignContainerError);
  }
  expect(await aside.inspect()).toMatchObject({ State: { Status: 'created' } });
  expect(await copier.inspect()).toMatchObject({ State: { Status: 'created' } });
  expect((await containers.inspect(spec.agentId))?.status).toBe('running');
});

const volumesOf = async (agentId: string) =>
  (await host.volumes.list(agentId)).map(({ name, madeBy }) => `${name} by ${madeBy}`).sort();

it('creates neither a container on a missing volume nor that volume', async () => {
  const spec = await running(await fixture.spec({ image }));
  const name = containerName(spec.agentId);
  await containers.remove(spec.agentId);
  await docker.getVolume(name).remove();
  await expect(containers.ensure(spec)).rejects.toBeInstanceOf(MemoryMissingError);
  expect(await namesOf(spec.agentId)).toEqual([]);
});

it('treats a volume that Docker created by itself as missing, and removes it', async () => {
  const spec = await fixture.spec({ image });
  const name = containerName(spec.agentId);
  await host.networks.ensure(spec);
  // Docker creates this volume when a container is created while its volume disappears.
  await docker.createContainer(containerOptions(spec, fixture));
  expect(await volumesOf(spec.agentId)).toEqual([`${name} by docker`]);
  await expect(host.volumes.require(spec)).rejects.toBeInstanceOf(MemoryMissingError);
  await expect(containers.ensure(spec)).rejects.toBeInstanceOf(MemoryMissingError);
  await containers.remove(spec.agentId);
  await host.volumes.ensure(spec, 'test');
  expect(await volumesOf(spec.agentId)).toEqual([`${name} by test`]);
});

it('removes only the named volumes, and only if their creator matches', async () => {
  const spec = await fixture.spec({ image });
  const name = containerName(spec.agentId);
  await host.volumes.ensure(spec, 'one');
  await host.volumes.make({ ...spec, volume: `${name}-newer` }, 'two');
  const stay = await host.volumes.remove(spec.agentId, [
    { name, madeBy: 'one' },
    { name: `${name}-newer`, madeBy: 'an operation of another state of the database' },
  ]);
  expect(stay).toEqual([{ name: `${name}-newer`, madeBy: 'two', agentId: spec.agentId }]);
  expect(await volumesOf(spec.agentId)).toEqual([`${name}-newer by two`]);
});

it('recreates a volume only for the operation that created it', async () => {
  const spec = await fixture.spec({ image });
  const name = containerName(spec.agentId);
  await host.volumes.make(spec, 'one');
  await host.volumes.make(spec, 'one');
  const next = { ...spec, volume: `${name}-next` };
  await host.volumes.make(next, 'one');
  await expect(host.volumes.make(next, 'two')).rejects.toBeInstanceOf(VolumeTakenError);
  await expect(host.volumes.copy(next, { ...spec, volume: name }, 'two')).rejects.toBeInstanceOf(
    VolumeTakenError,
  );
  expect(await volumesOf(spec.agentId)).toEqual([`${name} by one`, `${name}-next by one`]);
});

it('refuses to copy more than the limit: a sparse file is not written out', async () => {
  const spec = await running(await fixture.spec({ image }));
  const file = `${STATE_DIRECTORY}/holes`;
  await run(
    spec.agentId,
    `const fs = require('fs');
    fs.writeFileSync('${file}', ''); fs.truncateSync('${file}', 500 * 1024 ** 3)`,
  );
  await containers.stop(spec.agentId, 1);
  const { installation, labels } = fixture;
  const dockerHost = process.env.DOCKER_HOST;
  const bounded = (disk: DiskLimits) => new DockerHost({ dockerHost, installation, labels, disk });
  const next = { ...spec, volume: `${containerName(spec.agentId)}-next` };
  const copy = (disk: DiskLimits) =>
    bounded(disk).volumes.copy(next, { ...spec, volume: containerName(spec.agentId) }, 'test');
  await expect(copy({ floor: 0, volume: 32 * 1024 ** 2 })).rejects.toBeInstanceOf(
    VolumeTooLargeError,
  );
  // The source is measured first, so no copy was begun.
  expect(await namesOf(spec.agentId)).toEqual([
    `container ${containerName(spec.agentId)}`,
    `volume ${containerName(spec.agentId)}`,
  ]);
  await expect(copy({ floor: 2 ** 60, volume: 2 ** 60 })).rejects.toBeInstanceOf(DiskLowError);
  expect((await bounded({ floor: 2 ** 60, volume: 1 }).disk.space())?.low).toBe(true);
});

/** Script of an agent that hides files from a measurement. */
const HIDE = `
  const fs = require('fs');
  process.chdir('${STATE_DIRECTORY}');
  const megabyte = Buffer.alloc(1024 * 1024, 1);
  fs.mkdirSync('secret');
  fs.writeFileSync('secret/one', megabyte);
  fs.writeFileSync(Buffer.from([0x66, 0xff, 0xfe]), megabyte);
  fs.linkSync('secret/one', 'again');
  fs.writeFileSync('holes', '');
  fs.truncateSync('holes', 64 * 1024 ** 3);
  fs.chmodSync('secret', 0);
`;

/** Script that nests folders deeper than any path can name. */
const NEST = `
  const fs = require('fs');
  process.chdir('${STATE_DIRECTORY}');
  const name = 'd'.repeat(250);
  for (let depth = 0; depth < 20; depth++) {
    fs.mkdirSync(name);
    process.chdir(name);
  }
`;

it(
  'measures all files, however they are hidden, and leaves nothing behind',
  { tags: 'attack' },
  async () => {
    const [hidden, nested, unmade] = [
      await running(await fixture.spec({ image })),
      await running(await fixture.spec({ image })),
      await fixture.spec({ image }),
    ];
    const MIB = 1024 ** 2;
    const measured = [hidden, nested, unmade].map(({ agentId, userId }) => ({
      agentId,
      userId,
      volume: containerName(agentId),
    }));
    const bounds = { bytes: 64 * MIB, files: 1_000 };
    const [before] = await host.volumes.measure(image, measured, bounds);
    await run(hidden.agentId, HIDE);
    await run(nested.agentId, NEST);
    const [use, deep, none] = await host.volumes.measure(image, measured, bounds);
    expect(use?.complete).toBe(true);
    expect(use?.files).toBe((before?.files ?? 0) + 4);
    const grown = (use?.bytes ?? 0) - (before?.bytes ?? 0);
    expect(grown).toBeGreaterThanOrEqual(2 * MIB);
    expect(grown).toBeLessThan(3 * MIB);
    expect(use?.contents).toBeGreaterThan(64 * 1024 * MIB);
    expect(deep?.files).toBeGreaterThanOrEqual(bounds.files);
    expect(none).toBeUndefined();
    expect(await namesOf(unmade.agentId)).toEqual([]);
    const label = [`test-run=${fixture.installation}`, 'agent-platform.measures'];
    expect(await docker.listContainers({ all: true, filters: { label } })).toEqual([]);

    // Counting stops at the limit.
    const [enough] = await host.volumes.measure(image, measured.slice(0, 1), { bytes: MIB });
    expect(enough).toMatchObject({ complete: false });
  },
);

it('removes a volume still held by a measurement that never began or was cut off', async () => {
  const spec = await fixture.spec({ image });
  const { agentId, userId } = spec;
  const volume = containerName(agentId);
  await host.volumes.ensure(spec, 'test');
  const killed = vi.spyOn(Docker.prototype, 'createContainer');
  // Simulates an engine that is killed after it created the container and before it answers.
  killed.mockImplementationOnce(async (options) => {
    await docker.createContainer(options);
    throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
  });
  const measured = [{ agentId, userId, volume }];
  await expect(host.volumes.measure(image, measured, {})).rejects.toBeInstanceOf(
    DockerUnavailableError,
  );
  killed.mockRestore();
  const label = [`test-run=${fixture.installation}`, 'agent-platform.measures'];
  expect(await docker.listContainers({ all: true, filters: { label } })).toHaveLength(1);

  expect(await host.volumes.remove(agentId, [{ name: volume, madeBy: 'test' }])).toEqual([]);
  expect(await namesOf(agentId)).toEqual([]);
  expect(await docker.listContainers({ all: true, filters: { label } })).toEqual([]);
});

it('checks whether the engine enforces volume sizes, and removes the volume it checked with', async () => {
  const { installation, labels } = fixture;
  const dockerHost = process.env.DOCKER_HOST;
  const disk = { floor: 0, volume: 32 * 1024 ** 2 };
  const bounded = new DockerHost({ dockerHost, installation, labels, disk });
  const keeps = await bounded.volumes.keepsQuota();
  const spec = await fixture.spec({ image });
  await bounded.volumes.ensure(spec, 'test');
  const made = await docker.getVolume(containerName(spec.agentId)).inspect();
  expect(made.Options?.size).toBe(keeps ? String(disk.volume) : undefined);
  expect((await bounded.volumes.list()).map(({ name }) => name).join()).not.toContain('quota');
});

it('creates volumes with a size limit if the engine enforces it', async () => {
  const { installation, labels } = fixture;
  const dockerHost = process.env.DOCKER_HOST;
  const disk = { floor: 0, volume: 32 * 1024 ** 2 };
  const bounded = new DockerHost({ dockerHost, installation, labels, disk });
  vi.spyOn(bounded.volumes, 'keepsQuota').mockResolvedValue(true);
  const asked = vi.spyOn(Docker.prototype, 'createVolume');
  // Some engines that run the tests cannot limit sizes.
  asked.mockImplementationOnce(({ DriverOpts: _, ...rest } = {}) => docker.createVolume(rest));
  await bounded.volumes.ensure(await fixture.spec({ image }), 'test');
  expect(asked.mock.calls[0]?.[0]?.DriverOpts).toEqual({ size: String(disk.volume) });
  asked.mockRestore();
});

it('checks for size limits again after the engine died, and removes the leftover volume', async () => {
  const { installation, labels } = fixture;
  const dockerHost = process.env.DOCKER_HOST;
  const disk = { floor: 0, volume: 32 * 1024 ** 2 };
  const bounded = new DockerHost({ dockerHost, installation, labels, disk });
  const killed = vi.spyOn(Docker.prototype, 'createVolume');
  killed.mockImplementationOnce(async ({ Name: name, Labels: given } = {}) => {
    await docker.createVolume({ Name: name, Labels: given });
    throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
  });
  await expect(bounded.volumes.keepsQuota()).rejects.toBeInstanceOf(DockerUnavailableError);
  killed.mockRestore();
  const filters = JSON.stringify({ label: [`test-run=${installation}`], name: ['quota'] });
  const left = async () => (await docker.listVolumes({ filters })).Volumes.length;
  expect(await left()).toBe(1);
  expect(await bounded.volumes.keepsQuota()).toEqual(expect.any(Boolean));
  expect(await left()).toBe(0);
});
