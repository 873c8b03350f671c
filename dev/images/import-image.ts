import { createReadStream } from 'node:fs';
import type Docker from 'dockerode';

/** Bound for handing an archive of up to a gigabyte to an engine on a slow disk. */
const IMPORT_TIMEOUT_MS = 10 * 60_000;

/** Whether the engine has an image of this name. */
export async function hasImage(docker: Docker, tag: string): Promise<boolean> {
  const images = await docker.listImages({ filters: { reference: [tag] } });
  return images.length > 0;
}

/** Makes an image of one layer from a tar archive. Instructions are those of a Dockerfile. */
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
  // A failure after the upload is told in the body of a 200.
  if (!(await hasImage(docker, tag))) throw new Error(`The engine did not take the image: ${text}`);
}
