import type { DockerContainers } from '../containers/docker-containers.js';
import { ServiceError } from '../errors.js';

/** @throws ServiceError 500 (spec 4.11): without Docker nothing is done that depends on it. */
export async function requireDocker(containers: Pick<DockerContainers, 'available'>) {
  if (!(await containers.available())) throw new ServiceError(500, 'Docker is not available');
}
