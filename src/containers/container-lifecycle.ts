import { setTimeout as delay } from 'node:timers/promises';
import type Docker from 'dockerode';
import { type AgentContainerSpec, containerName, LABEL } from './container-spec.js';
import type { AgentNetworks } from './agent-networks.js';
import { DockerRefusedError, PortTakenError } from './container-errors.js';
import { containerOptions } from './container-profile.js';
import { containerState } from './container-view.js';
import { callDocker, callDockerUnless } from './docker-client.js';
import type { NamedContainers } from './named-containers.js';
import { isLoopbackPortFree, saysPortTaken } from './port-check.js';

const ATTEMPTS = 20;
const ATTEMPT_PAUSE_MS = 100;

export interface AgentContainersOptions {
  readonly installation: string;
  /** Bound for a usual call, in milliseconds. */
  readonly timeoutMs: number;
  /** Whether the containers' ports are ports of this machine. */
  readonly dockerIsLocal: boolean;
}

/** The one container that each agent runs in, from its making to its removal. */
export class AgentContainers {
  constructor(
    private readonly docker: Docker,
    private readonly named: NamedContainers,
    private readonly networks: AgentNetworks,
    private readonly options: AgentContainersOptions,
  ) {}

  /** Adopts or creates the container; one that was made from another specification is replaced. */
  async ensure(spec: AgentContainerSpec): Promise<{ id: string; created: boolean }> {
    const options = containerOptions(spec, this.options.installation);
    for (let attempt = 1; ; attempt++) {
      const existing = await this.named.find(spec.agentId);
      if (existing && (await this.fits(existing, options.Labels, spec.agentId))) {
        if (!existing.State.Running) await this.named.putFiles(existing.Id, spec.files);
        return { id: existing.Id, created: false };
      }
      if (existing) await this.remove(spec.agentId);
      try {
        const id = await this.named.create(options);
        await this.named.putFiles(id, spec.files);
        return { id, created: true };
      } catch (error) {
        // The name is taken: by another call like this, or by one being removed.
        const isTaken = error instanceof DockerRefusedError && error.statusCode === 409;
        if (!isTaken || attempt === ATTEMPTS) throw error;
      }
      await delay(ATTEMPT_PAUSE_MS);
    }
  }

  /** Starts the container, or finds it running. @throws PortTakenError, ContainerMissingError */
  async start(agentId: string): Promise<void> {
    const { dockerIsLocal, timeoutMs } = this.options;
    const found = await this.named.get(agentId);
    if (found.State.Running) return;
    const { port } = containerState(found);
    if (port !== undefined && dockerIsLocal && !(await isLoopbackPortFree(port))) {
      throw new PortTakenError(port);
    }
    try {
      await callDockerUnless([304], timeoutMs, (abortSignal) =>
        this.docker.getContainer(found.Id).start({ abortSignal }),
      );
    } catch (error) {
      // A start that was not heard of may have happened: what is there now decides.
      const now = await this.named.get(agentId);
      if (now.State.Running) return;
      if (port !== undefined && (await this.failedForPort(port, error))) {
        throw new PortTakenError(port, { cause: error });
      }
      throw error;
    }
  }

  /** Asks the container to stop and kills it after the grace. Missing or stopped is well. */
  async stop(agentId: string, graceSeconds: number): Promise<void> {
    const found = await this.named.find(agentId);
    if (!found?.State.Running) return;
    const bound = this.options.timeoutMs + graceSeconds * 1000;
    await callDockerUnless([304, 404], bound, (abortSignal) =>
      this.docker.getContainer(found.Id).stop({ t: graceSeconds, abortSignal }),
    );
  }

  /** Kills the container at once. Missing or stopped is well. */
  async kill(agentId: string): Promise<void> {
    const found = await this.named.find(agentId);
    if (!found?.State.Running) return;
    await callDockerUnless([404, 409], this.options.timeoutMs, (abortSignal) =>
      this.docker.getContainer(found.Id).kill({ abortSignal }),
    );
  }

  /** Removes the container, running or not, and waits until it is gone. Missing is well. */
  async remove(agentId: string): Promise<void> {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const found = await this.named.find(agentId);
      if (!found) return;
      // 409: it is being removed already.
      await callDockerUnless([404, 409], this.options.timeoutMs, (abortSignal) =>
        this.docker.getContainer(found.Id).remove({ force: true, v: true, abortSignal }),
      );
      if (attempt > 1) await delay(ATTEMPT_PAUSE_MS);
    }
    throw new DockerRefusedError(409, `${containerName(agentId)} is still being removed`);
  }

  /** Whether a container was made from these very options and still belongs to its network. */
  private async fits(
    container: Docker.ContainerInspectInfo,
    labels: Readonly<Record<string, string>> | undefined,
    agentId: string,
  ): Promise<boolean> {
    if (container.Config.Labels[LABEL.spec] !== labels?.[LABEL.spec]) return false;
    if (container.State.Status === 'removing' || container.State.Dead) return false;
    // One that ran before remembers the network by id, and cannot start on a new one of that name.
    const attached = container.NetworkSettings.Networks[containerName(agentId)]?.NetworkID;
    return !attached || attached === (await this.networks.find(agentId))?.Id;
  }

  private async failedForPort(port: number, error: unknown): Promise<boolean> {
    if (!(error instanceof DockerRefusedError)) return false;
    const filters = { publish: [`${port}`], status: ['running'] };
    const publishing = await callDocker(this.options.timeoutMs, (abortSignal) =>
      this.docker.listContainers({ filters, abortSignal }),
    );
    if (publishing.length > 0) return true;
    const { dockerIsLocal } = this.options;
    return dockerIsLocal ? !(await isLoopbackPortFree(port)) : saysPortTaken(error);
  }
}
