import { PassThrough, pipeline, Readable } from 'node:stream';
import type Docker from 'dockerode';
import { DockerUnavailableError, VolumeTooLargeError } from './container-errors.js';
import { asContainerError } from './docker-client.js';
import { filteredTar } from './tar-filter.js';
import { type FirstIds, withOwnersInside } from './tar-owners.js';

/** A Docker daemon that moves nothing for so long is not going to. */
const SILENCE_MS = 60_000;

/** Where the containers by which a volume is copied have theirs. */
export const COPIED = '/state';

/**
 * Streams all of one container's volume into the other's, with owners, modes, times and links, as
 * fast as Docker takes it. Neither needs to run. Two containers, because Docker locks one
 * for as long as it is read.
 *
 * @throws DockerUnavailableError when nothing moves for a minute, DockerRefusedError
 * @throws VolumeTooLargeError as soon as more than `maxBytes` have come.
 */
export async function copyThrough(
  from: Docker.Container,
  to: Docker.Container,
  {
    cancelled,
    leavesOut,
    maxBytes,
    usersFrom,
  }: {
    readonly cancelled?: AbortSignal | undefined;
    /** Of which paths within the volume nothing is copied. */
    readonly leavesOut?: ((path: string) => boolean) | undefined;
    readonly maxBytes: number;
    /** As the engine has it. */
    readonly usersFrom?: FirstIds | undefined;
  },
): Promise<void> {
  const over = new AbortController();
  let isSilent = false;
  const endSilence = () => {
    isSilent = true;
    over.abort();
  };
  let timer = setTimeout(endSilence, SILENCE_MS);
  const abortSignal = cancelled ? AbortSignal.any([cancelled, over.signal]) : over.signal;
  const meter = new PassThrough();
  let bytes = 0;
  meter.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > maxBytes) over.abort();
    clearTimeout(timer);
    timer = setTimeout(endSilence, SILENCE_MS);
  });
  meter.pause(); // until Docker takes it
  try {
    // From above, so that owner and mode of the folder itself come along.
    const taken = await from.getArchive({ path: COPIED, abortSignal });
    // Docker gives owners as the host has them, and takes them as containers do.
    const archive = usersFrom ? Readable.from(withOwnersInside(taken, usersFrom)) : taken;
    const copied = leavesOut ? filteredTar(archive, (name) => leavesOut(within(name))) : archive;
    pipeline(copied, meter, () => undefined); // its error comes out of the call that reads it
    await to.putArchive(meter, { path: '/', abortSignal });
  } catch (error) {
    cancelled?.throwIfAborted();
    if (bytes > maxBytes) throw new VolumeTooLargeError(maxBytes);
    if (isSilent) {
      throw new DockerUnavailableError(`The container engine copied nothing for ${SILENCE_MS} ms`);
    }
    throw asContainerError(error);
  } finally {
    clearTimeout(timer);
    over.abort();
  }
}

/** Names in the archive begin with the folder's own. */
const within = (name: string): string => name.split('/').slice(1).join('/');
