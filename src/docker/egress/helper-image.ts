import { ContainerError, ImageUnavailableError } from '../containers/container-errors.js';
import type { DockerClient } from '../containers/docker-client.js';
import { pullImage } from '../containers/runtime-images.js';

export class HelperImageError extends ContainerError {
  override readonly name = 'HelperImageError';
}

/** Returns the id of the helper image, after pulling it if missing. @throws HelperImageError */
export async function requireHelperImage(client: DockerClient, name: string): Promise<string> {
  const found = await idOf(client, name);
  if (found !== undefined) return found;
  try {
    await pullImage(client.docker, name);
  } catch (cause) {
    if (!(cause instanceof ImageUnavailableError)) throw cause;
    throw new HelperImageError(
      `Image ${name} is not on the Docker host and cannot be pulled: build it from ` +
        'dev/egress-image/Dockerfile, or set AGENT_EGRESS_IMAGE',
      { cause },
    );
  }
  const pulled = await idOf(client, name);
  if (pulled === undefined)
    throw new HelperImageError(`The Docker host did not keep image ${name}`);
  return pulled;
}

async function idOf(client: DockerClient, name: string): Promise<string | undefined> {
  const found = await client.callUnless([404], (docker) => docker.getImage(name).inspect());
  return found?.Id;
}
