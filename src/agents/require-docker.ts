import type { DockerHost } from '../containers/docker-host.js';
import { ServiceError } from '../errors.js';

/** @throws ServiceError 500 (spec 4.11): without Docker nothing is done that depends on it. */
export async function requireDocker(docker: Pick<DockerHost, 'available'>) {
  if (!(await docker.available())) throw new ServiceError(500, 'Docker is not available');
}
