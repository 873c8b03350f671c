import { buffer } from 'node:stream/consumers';
import { addAbortSignal, pipeline, type Readable } from 'node:stream';
import { extract } from 'tar-stream';
import { STATE_DIRECTORY } from './container-spec.js';
import type { DockerClient } from './docker-client.js';

/** Milliseconds for the whole file. */
const READ_MS = 10_000;

/**
 * Reads a file of the state volume as Docker shows it; undefined if it is missing, is no plain file, or is
 * larger than `maxBytes`. @throws DockerUnavailableError, DockerRefusedError
 */
export async function readStateFile(
  client: DockerClient,
  containerId: string,
  { maxBytes, path }: { readonly path: string; readonly maxBytes: number },
): Promise<string | undefined> {
  const signal = AbortSignal.timeout(READ_MS);
  return client.callUnless(
    [404],
    async (docker) => {
      const archive = await docker
        .getContainer(containerId)
        .getArchive({ path: `${STATE_DIRECTORY}/${path}`, abortSignal: signal });
      return firstFile(archive, maxBytes, signal);
    },
    READ_MS,
  );
}

async function firstFile(
  archive: NodeJS.ReadableStream,
  maxBytes: number,
  signal: AbortSignal,
): Promise<string | undefined> {
  const entries = extract();
  // The archive of a request to Docker is Node's stream of its answer.
  const read = addAbortSignal(signal, archive as Readable);
  pipeline(read, entries, () => undefined); // its error surfaces in the loop
  try {
    for await (const entry of entries) {
      const { size = 0, type } = entry.header;
      if (type !== 'file' || size > maxBytes) return undefined;
      return (await buffer(entry)).toString('utf8');
    }
    return undefined;
  } finally {
    read.destroy();
  }
}
