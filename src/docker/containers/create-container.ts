import type Docker from 'dockerode';
import { DockerRefusedError, ImageUnavailableError } from './container-errors.js';
import type { DockerClient } from './docker-client.js';

/**
 * Creates a container without starting it, and returns its id.
 * @throws ImageUnavailableError, DockerRefusedError with 409 if the name is in use.
 */
export async function createContainer(
  client: DockerClient,
  options: Docker.ContainerCreateOptions,
): Promise<string> {
  try {
    const { id } = await client.call((docker, bound) =>
      docker.createContainer({ ...options, ...bound }),
    );
    return id;
  } catch (error) {
    if (error instanceof DockerRefusedError && error.statusCode === 404) {
      throw new ImageUnavailableError(options.Image ?? '', { cause: error });
    }
    throw error;
  }
}
