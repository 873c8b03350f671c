import type Docker from 'dockerode';
import { ForeignContainerError } from './container-errors.js';
import { isOurs } from './container-profile.js';
import { removeContainer } from './throw-away.js';
import type { DockerClient } from './docker-client.js';

/** An installation's containers by name. A container of another owner under such a name is refused. */
export class NamedContainers {
  readonly #client: DockerClient;

  constructor(client: DockerClient) {
    this.#client = client;
  }

  async find(agentId: string, name: string): Promise<Docker.ContainerInspectInfo | undefined> {
    const found = await this.#client.callUnless([404], (docker, bound) =>
      docker.getContainer(name).inspect(bound),
    );
    if (found && !isOurs(found.Config.Labels, agentId, this.#client)) {
      throw new ForeignContainerError('container', name);
    }
    return found;
  }

  /** Removes a container, and returns false if it is missing; one already being removed is no error. */
  async remove(agentId: string, name: string): Promise<boolean> {
    const found = await this.find(agentId, name);
    if (!found) return false;
    await removeContainer(this.#client, found.Id);
    return true;
  }
}
