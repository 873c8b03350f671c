import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import {
  DiskLowError,
  MemoryMissingError,
  VolumeMissingError,
  VolumeTooLargeError,
} from '../../../src/docker/containers/container-errors.js';
import { ownershipLabels } from '../../../src/docker/containers/container-profile.js';
import {
  containerName,
  LABEL,
  MADE_BY_DOCKER,
  STATE_DIRECTORY,
} from '../../../src/docker/containers/container-spec.js';
import { DockerHost } from '../../../src/docker/containers/docker-host.js';
import { ensureTestImage } from '../../agent-image/ensure-test-image.js';
import { runInContainer } from '../../support/run-in-container.js';
import { testDocker } from '../../support/docker.js';

/** Changes of a volume or of the disk while another step is in flight. */

const fixture = testDocker();
const { containers, docker, host } = fixture;
const { disk, volumes } = host;
let image: string;

beforeAll(async () => {
  image = await ensureTestImage(docker);
});
afterEach(() => vi.restoreAllMocks());
afterAll(() => fixture.close());

const MIB = 1024 ** 2;

/** Creates a stopped agent with the given bytes in its memory, and the target of a copy of it. */
async function stoppedAgent(bytes: number) {
  const spec = await fixture.spec({ image });
  const { agentId, userId } = spec;
  await host.networks.ensure(spec);
  await volumes.ensure(spec, 'test');
  await containers.ensure(spec);
  await containers.start(agentId);
  const write = `require('fs').writeFileSync('${STATE_DIRECTORY}/much', Buffer.alloc(${bytes}, 1))`;
  await runInContainer(docker, containerName(agentId), write);
  await containers.stop(agentId, 1);
  const original = { agentId, userId, volume: containerName(agentId) };
  return { spec, original, next: { ...spec, volume: `${containerName(agentId)}-next` } };
}

const remove = ({ agentId, volume }: { readonly agentId: string; readonly volume: string }) =>
  volumes.remove(agentId, [{ name: volume, madeBy: 'test' }]);
const listed = async (agentId: string) => (await volumes.list(agentId)).map(({ name }) => name);

test('a copy fails if the disk no longer has room for the memory', async () => {
  const { next, original } = await stoppedAgent(64 * MIB);
  const room = vi.spyOn(disk, 'room');
  // Room when the source is measured, when the volume is created, and when the copy begins.
  for (const free of [1024 * MIB, 1024 * MIB, 8 * MIB]) room.mockResolvedValueOnce(free);
  await expect(volumes.copy(next, original, 'test')).rejects.toThrow(VolumeTooLargeError);
  expect(room).toHaveBeenCalledTimes(3);
  vi.restoreAllMocks();
  const spec = { ...next, agentId: original.agentId, userId: original.userId };
  const [made] = await volumes.measure(image, [spec], {});
  expect(made?.bytes).toBeLessThan(32 * MIB);
});

test('no volume is created if the disk has no room for it', async () => {
  const spec = await fixture.spec({ image });
  vi.spyOn(disk, 'room').mockRejectedValueOnce(new DiskLowError(0, 1));
  await expect(volumes.make(spec, 'test')).rejects.toThrow(DiskLowError);
  expect(await listed(spec.agentId)).toEqual([]);
});

test('a memory that disappears before its copy is reported missing instead of copied empty', async () => {
  const { next, original } = await stoppedAgent(1);
  await containers.remove(original.agentId);
  const room = vi.spyOn(disk, 'room');
  room.mockResolvedValueOnce(1024 * MIB).mockImplementationOnce(async () => {
    await remove(original);
    return 1024 * MIB;
  });
  await expect(volumes.copy(next, original, 'test')).rejects.toThrow(VolumeMissingError);
  expect(await volumes.find(original)).toBeUndefined();
});

test("a copy of a removed agent's vanished memory leaves no volume created by Docker", async () => {
  const { original } = await stoppedAgent(1);
  await containers.remove(original.agentId);
  const spec = await fixture.spec({ image });
  const next = { ...spec, volume: `${containerName(spec.agentId)}-next` };
  const room = vi.spyOn(disk, 'room');
  room.mockResolvedValueOnce(1024 * MIB).mockImplementationOnce(async () => {
    await remove(original);
    return 1024 * MIB;
  });
  await expect(volumes.copy(next, original, 'test')).rejects.toThrow(VolumeMissingError);
  expect(await listed(original.agentId)).toEqual([]);
});

test('a container created while its memory disappears is refused and removed', async () => {
  const spec = await fixture.spec({ image });
  await host.networks.ensure(spec);
  await volumes.ensure(spec, 'test');
  const volume = containerName(spec.agentId);
  vi.spyOn(volumes, 'require').mockImplementationOnce(async () => {
    await remove({ ...spec, volume });
  });
  await expect(containers.ensure(spec)).rejects.toThrow(MemoryMissingError);
  expect(await containers.inspect(spec.agentId)).toBeUndefined();
  expect(await listed(spec.agentId)).toEqual([]);
});

test('removing an agent removes a volume that Docker created by itself, whatever volumes are named', async () => {
  const spec = await fixture.spec({ image });
  await docker.createVolume({
    Name: containerName(spec.agentId),
    Labels: { ...ownershipLabels(spec, fixture), [LABEL.madeBy]: MADE_BY_DOCKER },
  });
  expect(await listed(spec.agentId)).toEqual([containerName(spec.agentId)]);
  expect(await volumes.remove(spec.agentId, [])).toEqual([]);
  expect(await listed(spec.agentId)).toEqual([]);
});

test("one more memory may use only the free space above the disk's floor", async () => {
  const free = (await disk.space())?.free ?? 0;
  const { installation, labels } = fixture;
  const limits = { floor: free - 1024 * MIB, volume: 2 ** 50 };
  const near = new DockerHost({
    dockerHost: process.env.DOCKER_HOST,
    installation,
    labels,
    disk: limits,
  });
  // Other processes write to the disk at the same time.
  expect(await near.disk.room()).toBeLessThan(free);
});

test('a memory that disappears before its measurement is reported missing instead of empty', async () => {
  const { original } = await stoppedAgent(1);
  await containers.remove(original.agentId);
  const find = volumes.find.bind(volumes);
  vi.spyOn(volumes, 'find').mockImplementationOnce(async (spec) => {
    const found = await find(spec);
    await remove(original);
    return found;
  });
  expect(await volumes.measure(image, [original], {})).toEqual([undefined]);
  expect(await listed(original.agentId)).toEqual([]);
});
