import type { DockerHost } from '../../docker/containers/docker-host.js';
import { DockerAwayError } from '../../lib/errors.js';

export async function requireDocker(docker: Pick<DockerHost, 'available'>) {
  if (!(await docker.available())) throw new DockerAwayError();
}
