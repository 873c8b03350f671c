import type Docker from 'dockerode';
import { type AgentContainerSpec, containerName, LABEL, volumeName } from './container-spec.js';
import { ForeignContainerError, VolumeMissingError } from './container-errors.js';
import { isOurs, ownershipLabels } from './container-profile.js';
import { callDocker, callDockerUnless } from './docker-client.js';

/** The volumes that hold one agent's state: the one that it uses, earlier ones and archives. */
export class AgentVolumes {
  constructor(
    private readonly docker: Docker,
    private readonly installation: string,
    private readonly timeoutMs: number,
  ) {}

  /** Adopts or creates the volume. */
  async ensure(spec: AgentContainerSpec): Promise<void> {
    const name = volumeName(spec);
    if (await this.find(name, spec.agentId)) return;
    await callDocker(this.timeoutMs, (abortSignal) =>
      this.docker.createVolume({
        Name: name,
        Labels: ownershipLabels(spec, this.installation),
        abortSignal,
      }),
    );
    // Creating one that exists succeeds and changes nothing: so look whose it is.
    await this.find(name, spec.agentId);
  }

  /** Makes the volume anew, empty. No container may use it. */
  async renew(spec: AgentContainerSpec): Promise<void> {
    const old = await this.find(volumeName(spec), spec.agentId);
    if (old) await this.remove(old.Name);
    await this.ensure(spec);
  }

  /** @throws VolumeMissingError, ForeignContainerError */
  async require(name: string, agentId: string): Promise<void> {
    if (!(await this.find(name, agentId))) throw new VolumeMissingError(name);
  }

  /** Removes every volume of the agent but those named. No container may use one of them. */
  async removeAllBut(agentId: string, kept: readonly string[]): Promise<void> {
    await this.find(containerName(agentId), agentId);
    const label = [`${LABEL.agent}=${agentId}`, `${LABEL.installation}=${this.installation}`];
    const filters = JSON.stringify({ label });
    const { Volumes: volumes } = await callDocker(this.timeoutMs, (abortSignal) =>
      this.docker.listVolumes({ filters, abortSignal }),
    );
    for (const { Name: name } of volumes ?? []) if (!kept.includes(name)) await this.remove(name);
  }

  private async remove(name: string): Promise<void> {
    await callDockerUnless([404], this.timeoutMs, (abortSignal) =>
      this.docker.getVolume(name).remove({ abortSignal }),
    );
  }

  private async find(name: string, agentId: string): Promise<Docker.VolumeInspectInfo | undefined> {
    const found = await callDockerUnless([404], this.timeoutMs, (abortSignal) =>
      this.docker.getVolume(name).inspect({ abortSignal }),
    );
    if (found && !isOurs(found.Labels, agentId, this.installation)) {
      throw new ForeignContainerError('volume', name);
    }
    return found;
  }
}
