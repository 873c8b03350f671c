import type Docker from 'dockerode';
import { containerName, STATE_DIRECTORY } from './container-spec.js';
import {
  ContainerMissingError,
  DockerRefusedError,
  ForeignContainerError,
  ImageUnavailableError,
} from './container-errors.js';
import { isOurs } from './container-profile.js';
import { callDocker, callDockerUnless } from './docker-client.js';
import { stateArchive } from './state-archive.js';

/** One installation's containers, by their names. What has such a name and is not ours is refused. */
export class NamedContainers {
  constructor(
    private readonly docker: Docker,
    private readonly installation: string,
    private readonly timeoutMs: number,
  ) {}

  /** @throws ForeignContainerError */
  async find(
    agentId: string,
    name = containerName(agentId),
  ): Promise<Docker.ContainerInspectInfo | undefined> {
    const found = await callDockerUnless([404], this.timeoutMs, (abortSignal) =>
      this.docker.getContainer(name).inspect({ abortSignal }),
    );
    if (found && !isOurs(found.Config.Labels, agentId, this.installation)) {
      throw new ForeignContainerError('container', name);
    }
    return found;
  }

  /** The agent's own container. @throws ContainerMissingError, ForeignContainerError */
  async get(agentId: string): Promise<Docker.ContainerInspectInfo> {
    const found = await this.find(agentId);
    if (!found) throw new ContainerMissingError(agentId);
    return found;
  }

  /**
   * @returns its id.
   * @throws ImageUnavailableError, DockerRefusedError with 409 when the name is taken.
   */
  async create(options: Docker.ContainerCreateOptions): Promise<string> {
    try {
      const { id } = await callDocker(this.timeoutMs, (abortSignal) =>
        this.docker.createContainer({ ...options, abortSignal }),
      );
      return id;
    } catch (error) {
      if (error instanceof DockerRefusedError && error.statusCode === 404) {
        throw new ImageUnavailableError(options.Image ?? '', { cause: error });
      }
      throw error;
    }
  }

  /** Puts files into a container's state volume, running or not. @throws RangeError */
  async putFiles(id: string, files: Readonly<Record<string, string>>): Promise<void> {
    if (Object.keys(files).length === 0) return;
    const archive = await stateArchive(files);
    await callDocker(this.timeoutMs, (abortSignal) =>
      this.docker.getContainer(id).putArchive(archive, { path: STATE_DIRECTORY, abortSignal }),
    );
  }
}
