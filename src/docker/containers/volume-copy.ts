import { PassThrough, pipeline, Readable } from 'node:stream';
import type Docker from 'dockerode';
import { DockerUnavailableError, VolumeTooLargeError } from './container-errors.js';
import { asContainerError } from './docker-client.js';
import { filteredTar } from './tar-filter.js';
import { type FirstIds, withOwnersInside } from './tar-owners.js';

/** Milliseconds without progress until a copy fails. */
const SILENCE_MS = 60_000;

/** Mount point of the volume in the containers of a copy. */
export const COPIED = '/state';

/**
 * Streams one container's volume into another's, with owners, modes, times and links, at Docker's pace.
 * Neither needs to run; there are two, because Docker locks a container while it is read.
 * @throws DockerUnavailableError after a minute without progress, DockerRefusedError, VolumeTooLargeError
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
    /** Predicate for paths within the volume to skip. */
    readonly leavesOut?: ((path: string) => boolean) | undefined;
    readonly maxBytes: number;
    /** First ids of the engine's user namespace. */
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
  meter.pause(); // until Docker is ready
  try {
    // Reads the folder itself, so that its owner and mode are copied too.
    const taken = await from.getArchive({ path: COPIED, abortSignal });
    // Docker reads owners as host ids, but writes them as container ids.
    const archive = usersFrom ? Readable.from(withOwnersInside(taken, usersFrom)) : taken;
    const copied = leavesOut ? filteredTar(archive, (name) => leavesOut(within(name))) : archive;
    pipeline(copied, meter, () => undefined); // its error surfaces in the call that reads the stream
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

/** Returns a path without the folder's own name, which begins every name in the archive. */
const within = (name: string): string => name.split('/').slice(1).join('/');
