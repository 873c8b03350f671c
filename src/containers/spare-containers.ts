import type Docker from 'dockerode';
import { type AgentContainerSpec, containerName } from './container-spec.js';
import { ownershipLabels } from './container-profile.js';
import { callDocker, callDockerUnless } from './docker-client.js';
import type { NamedContainers } from './named-containers.js';
import { copyBind } from './volume-copy.js';

/** Name of the container that an agent goes back to when its new one fails. */
const previousName = (agentId: string): string => `${containerName(agentId)}-previous`;

/** Names of the containers by which an agent's volume is copied; they never run. */
const copyNames = (agentId: string) => ({
  from: `${containerName(agentId)}-copy-from`,
  to: `${containerName(agentId)}-copy-to`,
});

/** What an agent has in Docker beside its container: for a while, or left by a killed worker. */
export class SpareContainers {
  constructor(
    private readonly docker: Docker,
    private readonly named: NamedContainers,
    private readonly installation: string,
    private readonly timeoutMs: number,
  ) {}

  /** Frees the name of the agent's stopped container for another one. Missing is well. */
  async retainContainer(agentId: string): Promise<void> {
    const current = await this.named.find(agentId);
    if (!current) return;
    // One from a replacement that nobody has brought to its end.
    await this.remove(agentId, previousName(agentId));
    await this.rename(current, previousName(agentId));
  }

  /** Puts the container that was set aside in the place of the present one; none is well. */
  async restoreContainer(agentId: string): Promise<void> {
    const previous = await this.named.find(agentId, previousName(agentId));
    if (!previous) return;
    await this.remove(agentId, containerName(agentId));
    await this.rename(previous, containerName(agentId));
  }

  async removeAll(agentId: string): Promise<void> {
    await this.removeCopiers(agentId);
    await this.remove(agentId, previousName(agentId));
  }

  /** Containers that never run, one on each of the volumes of a copy. */
  async createCopiers(
    spec: AgentContainerSpec,
    volumes: { readonly from: string; readonly to: string },
  ): Promise<{ from: Docker.Container; to: Docker.Container }> {
    const names = copyNames(spec.agentId);
    return {
      from: await this.createCopier(spec, names.from, volumes.from),
      to: await this.createCopier(spec, names.to, volumes.to),
    };
  }

  async removeCopiers(agentId: string): Promise<void> {
    const { from, to } = copyNames(agentId);
    await this.remove(agentId, from);
    await this.remove(agentId, to);
  }

  private async createCopier(
    spec: AgentContainerSpec,
    name: string,
    volume: string,
  ): Promise<Docker.Container> {
    const id = await this.named.create({
      name,
      Image: spec.image,
      Labels: ownershipLabels(spec, this.installation),
      HostConfig: { NetworkMode: 'none', Binds: [copyBind(volume)] },
    });
    return this.docker.getContainer(id);
  }

  private async remove(agentId: string, name: string): Promise<void> {
    const found = await this.named.find(agentId, name);
    if (!found) return;
    await callDockerUnless([404], this.timeoutMs, (abortSignal) =>
      this.docker.getContainer(found.Id).remove({ force: true, v: true, abortSignal }),
    );
  }

  private async rename(container: Docker.ContainerInspectInfo, name: string): Promise<void> {
    await callDocker(this.timeoutMs, (abortSignal) =>
      this.docker.getContainer(container.Id).rename({ name, abortSignal }),
    );
  }
}
