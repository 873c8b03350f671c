import type { DockerHost } from '../containers/docker-host.js';
import { DockerAwayError } from '../errors.js';

/** @throws DockerAwayError */
export async function requireDocker(docker: Pick<DockerHost, 'available'>) {
  if (!(await docker.available())) throw new DockerAwayError();
}
