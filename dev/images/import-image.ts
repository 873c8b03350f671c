import { createReadStream } from 'node:fs';
import type Docker from 'dockerode';

/** Milliseconds to import an archive of up to a gigabyte into an engine with a slow disk. */
const IMPORT_TIMEOUT_MS = 10 * 60_000;

/** Reports whether the engine has an image with this tag. */
export async function hasImage(docker: Docker, tag: string): Promise<boolean> {
  const images = await docker.listImages({ filters: { reference: [tag] } });
  return images.length > 0;
}

/** Makes a single-layer image from a tar archive. The instructions are those of a Dockerfile. */
export async function importImage(
  docker: Docker,
  archive: string,
  tag: string,
  instructions: readonly string[],
): Promise<void> {
  const [repo, version] = tag.split(':');
  const abortSignal = AbortSignal.timeout(IMPORT_TIMEOUT_MS);
  const answer: NodeJS.ReadableStream = await docker.importImage(createReadStream(archive), {
    repo,
    tag: version,
    changes: instructions,
    abortSignal,
  });
  let text = '';
  for await (const chunk of answer) text += chunk.toString();
  // The engine reports a failure after the upload in the body of a 200 response.
  if (!(await hasImage(docker, tag)))
    throw new Error(`The engine did not import the image: ${text}`);
}
