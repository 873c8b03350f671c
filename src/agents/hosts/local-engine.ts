import type { DockerHost } from '../../docker/containers/docker-host.js';

/** The Docker host on the machine of a process. */
export interface LocalEngine<D extends Partial<DockerHost> = DockerHost> {
  readonly id: string;
  readonly docker: D;
}
