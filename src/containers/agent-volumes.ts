import type Docker from 'dockerode';
import { ForeignContainerError, VolumeMissingError } from './container-errors.js';
import { isOurs, ownershipLabels } from './container-profile.js';
import {
  type AgentContainerSpec,
  containerName,
  LABEL,
  spareNames,
  volumeName,
} from './container-spec.js';
import type { DockerClient } from './docker-client.js';
import type { NamedContainers } from './named-containers.js';
import { copyBind, copyThrough } from './volume-copy.js';

/** The volumes that hold one agent's state: the one that it uses, earlier ones and archives. */
export class AgentVolumes {
  readonly #client: DockerClient;
  readonly #named: NamedContainers;

  constructor(client: DockerClient, named: NamedContainers) {
    this.#client = client;
    this.#named = named;
  }

  /** Adopts or creates the volume. */
  async ensure(spec: AgentContainerSpec): Promise<void> {
    const name = volumeName(spec);
    if (await this.#find(name, spec.agentId)) return;
    await this.#client.call((docker, bound) =>
      docker.createVolume({
        Name: name,
        Labels: ownershipLabels(spec, this.#client),
        ...bound,
      }),
    );
    // Creating one that exists succeeds and changes nothing: so look whose it is.
    await this.#find(name, spec.agentId);
  }

  /** @throws ForeignContainerError when it is not this agent's. */
  async exists(agentId: string, name: string): Promise<boolean> {
    return (await this.#find(name, agentId)) !== undefined;
  }

  /** Makes the volume anew, empty. No container may use it. */
  async renew(spec: AgentContainerSpec): Promise<void> {
    const old = await this.#find(volumeName(spec), spec.agentId);
    if (old) await this.#remove(old.Name);
    await this.ensure(spec);
  }

  /**
   * Makes the volume anew, as a copy of another one of the agent's: owners, modes, times and links
   * as there. What uses either should not run.
   *
   * @throws VolumeMissingError
   */
  async copy(spec: AgentContainerSpec, from: string, signal?: AbortSignal): Promise<void> {
    const { agentId } = spec;
    if (!(await this.#find(from, agentId))) throw new VolumeMissingError(from);
    await this.#removeCopiers(agentId);
    await this.renew(spec);
    const { copyFrom, copyTo } = spareNames(agentId);
    const source = await this.#createCopier(spec, copyFrom, from);
    const target = await this.#createCopier(spec, copyTo, volumeName(spec));
    await copyThrough(source, target, signal);
    await this.#removeCopiers(agentId);
  }

  /**
   * Removes the agent's volumes with their state, but those that are named, and the containers that
   * are kept beside the agent's own. Missing is well; its container goes first.
   */
  async remove(agentId: string, kept: readonly string[] = []): Promise<void> {
    await this.#removeCopiers(agentId);
    await this.#named.remove(agentId, spareNames(agentId).previous);
    await this.#find(containerName(agentId), agentId);
    const label = [
      `${LABEL.agent}=${agentId}`,
      `${LABEL.installation}=${this.#client.installation}`,
    ];
    const filters = JSON.stringify({ label });
    const { Volumes: volumes } = await this.#client.call((docker, bound) =>
      docker.listVolumes({ filters, ...bound }),
    );
    for (const { Name: name } of volumes ?? []) if (!kept.includes(name)) await this.#remove(name);
  }

  /** A container that never runs, on one of the volumes of a copy. */
  async #createCopier(
    spec: AgentContainerSpec,
    name: string,
    volume: string,
  ): Promise<Docker.Container> {
    const id = await this.#named.create({
      name,
      Image: spec.image,
      Labels: ownershipLabels(spec, this.#client),
      HostConfig: { NetworkMode: 'none', Binds: [copyBind(volume)] },
    });
    return this.#client.docker.getContainer(id);
  }

  async #removeCopiers(agentId: string): Promise<void> {
    const { copyFrom, copyTo } = spareNames(agentId);
    await this.#named.remove(agentId, copyFrom);
    await this.#named.remove(agentId, copyTo);
  }

  async #remove(name: string): Promise<void> {
    await this.#client.callUnless([404], (docker, bound) => docker.getVolume(name).remove(bound));
  }

  async #find(name: string, agentId: string): Promise<Docker.VolumeInspectInfo | undefined> {
    const found = await this.#client.callUnless([404], (docker, bound) =>
      docker.getVolume(name).inspect(bound),
    );
    if (found && !isOurs(found.Labels, agentId, this.#client)) {
      throw new ForeignContainerError('volume', name);
    }
    return found;
  }
}
