import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import {
  DiskLowError,
  VolumeMissingError,
  VolumeTooLargeError,
} from '../../src/containers/container-errors.js';
import { containerName, STATE_DIRECTORY } from '../../src/containers/container-spec.js';
import { ensureTestImage } from '../agent-image/ensure-test-image.js';
import { runInContainer } from '../support/run-in-container.js';
import { testDocker } from '../support/docker.js';

/** What happens to a volume, or to the disk, while another step is under way. */

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

/** A stopped agent with so much in its memory, and what a copy of that is for. */
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

test('a copy ends where the disk has less room by then than the memory takes', async () => {
  const { next, original } = await stoppedAgent(64 * MIB);
  const room = vi.spyOn(disk, 'room');
  // When it is measured, when the volume is made, and when the copy begins.
  for (const free of [1024 * MIB, 1024 * MIB, 8 * MIB]) room.mockResolvedValueOnce(free);
  await expect(volumes.copy(next, original, 'test')).rejects.toThrow(VolumeTooLargeError);
  expect(room).toHaveBeenCalledTimes(3);
  vi.restoreAllMocks();
  const spec = { ...next, agentId: original.agentId, userId: original.userId };
  const [made] = await volumes.measure(image, [spec], {});
  expect(made?.bytes).toBeLessThan(32 * MIB);
});

test('no volume is made where the disk has no room for it', async () => {
  const spec = await fixture.spec({ image });
  vi.spyOn(disk, 'room').mockRejectedValueOnce(new DiskLowError(0, 1));
  await expect(volumes.make(spec, 'test')).rejects.toThrow(DiskLowError);
  expect(await listed(spec.agentId)).toEqual([]);
});

test('a memory that goes while it is to be copied is missing, and not an empty one', async () => {
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

test('a memory that goes while it is to be measured is not there, and not an empty one', async () => {
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
