import { randomUUID } from 'node:crypto';
import type Docker from 'dockerode';
import { withTag, versionOf } from '../../src/docker/containers/image-name.js';
import { hasImage } from '../../dev/images/import-image.js';

/**
 * Builds a version of an image with further Dockerfile instructions and its own tag.
 *
 * @returns the tag, without the repository.
 */
export async function varyTestImage(
  docker: Docker,
  image: string,
  name: string,
  instructions: readonly string[],
): Promise<string> {
  const tag = `${versionOf(image)}-${name}`;
  const varied = withTag(image, tag);
  if (await hasImage(docker, varied)) return tag;
  const [repo] = varied.split(':');
  const container = await docker.createContainer({ name: `vary-${randomUUID()}`, Image: image });
  try {
    await container.commit({ repo, tag, changes: instructions.join('\n') });
  } finally {
    await container.remove({ force: true });
  }
  return tag;
}
