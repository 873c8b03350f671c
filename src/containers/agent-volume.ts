import type Docker from 'dockerode';
import { type AgentContainerSpec, containerName } from './agent-container.js';
import { ForeignContainerError } from './container-errors.js';
import { isOurs, ownershipLabels } from './container-profile.js';
import { callEngine, callEngineUnless } from './engine.js';

/** The volume that holds one agent's state. */
export class AgentVolumes {
  constructor(
    private readonly docker: Docker,
    private readonly installation: string,
    private readonly timeoutMs: number,
  ) {}

  /** Adopts or creates the volume. */
  async ensure(spec: AgentContainerSpec): Promise<void> {
    if (await this.find(spec.agentId)) return;
    await callEngine(this.timeoutMs, (abortSignal) =>
      this.docker.createVolume({
        Name: containerName(spec.agentId),
        Labels: ownershipLabels(spec, this.installation),
        abortSignal,
      }),
    );
    // Creating one that exists succeeds and changes nothing: so look whose it is.
    await this.find(spec.agentId);
  }

  async remove(agentId: string): Promise<void> {
    const volume = await this.find(agentId);
    if (!volume) return;
    await callEngineUnless([404], this.timeoutMs, (abortSignal) =>
      this.docker.getVolume(volume.Name).remove({ abortSignal }),
    );
  }

  private async find(agentId: string): Promise<Docker.VolumeInspectInfo | undefined> {
    const name = containerName(agentId);
    const found = await callEngineUnless([404], this.timeoutMs, (abortSignal) =>
      this.docker.getVolume(name).inspect({ abortSignal }),
    );
    if (found && !isOurs(found.Labels, agentId, this.installation)) {
      throw new ForeignContainerError('volume', name);
    }
    return found;
  }
}
