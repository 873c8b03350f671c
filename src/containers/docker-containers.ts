import type Docker from 'dockerode';
import {
  type AgentContainerSpec,
  type ContainerState,
  type ContainerStats,
  type ContainerSummary,
  type LogLine,
  type LogOptions,
  volumeName,
} from './container-spec.js';
import { AgentContainers } from './container-lifecycle.js';
import { AgentNetworks } from './agent-networks.js';
import { AgentVolumes } from './agent-volumes.js';
import { DockerRefusedError, DockerUnavailableError } from './container-errors.js';
import { type ContainerEvent, followContainers } from './container-events.js';
import { type OpenLog, readLog, resumeLog } from './container-logs.js';
import { containerState, containerStats } from './container-view.js';
import { asContainerError, callDocker, connectDocker } from './docker-client.js';
import { hostAddress } from './host-address.js';
import { listContainers, runningAgents } from './list-containers.js';
import { openLog } from './log-stream.js';
import { NamedContainers } from './named-containers.js';
import { resourceOwners } from './resource-owners.js';
import { ensureImage, type PullOptions, type RuntimeImage } from './runtime-image.js';
import { SpareContainers } from './spare-containers.js';
import { copyThrough } from './volume-copy.js';

export interface DockerContainersOptions {
  /** As in `DOCKER_HOST`; Docker's usual socket when left out. */
  readonly dockerHost?: string | undefined;
  /** Tells apart installations on one Docker daemon; what belongs to another one is refused. */
  readonly installation?: string | undefined;
  /** Bound for a usual call, in milliseconds. */
  readonly timeoutMs?: number | undefined;
}

const AVAILABLE_TIMEOUT_MS = 2_000;

/**
 * The agents' containers, networks and volumes on one Docker daemon. Names follow from the agent's
 * id, so every method can be called again after a call that was not heard of: it finds what is
 * there. All of them throw DockerUnavailableError when Docker does not answer in time, and
 * ForeignContainerError, touching nothing, when a name is taken by what is not ours.
 */
export class DockerContainers {
  private readonly docker: Docker;
  private readonly named: NamedContainers;
  private readonly containers: AgentContainers;
  private readonly networks: AgentNetworks;
  private readonly volumes: AgentVolumes;
  private readonly spares: SpareContainers;
  private readonly installation: string;
  private readonly timeoutMs: number;

  constructor(options: DockerContainersOptions = {}) {
    const docker = connectDocker(options.dockerHost);
    const installation = options.installation ?? 'default';
    const timeoutMs = options.timeoutMs ?? 30_000;
    const dockerIsLocal = !/^(tcp|https?):/.test(options.dockerHost ?? '');
    this.docker = docker;
    this.installation = installation;
    this.timeoutMs = timeoutMs;
    this.named = new NamedContainers(docker, installation, timeoutMs);
    this.networks = new AgentNetworks(docker, installation, timeoutMs);
    this.volumes = new AgentVolumes(docker, installation, timeoutMs);
    this.spares = new SpareContainers(docker, this.named, installation, timeoutMs);
    this.containers = new AgentContainers(docker, this.named, this.networks, {
      installation,
      timeoutMs,
      dockerIsLocal,
    });
  }

  /** Whether Docker answers, within 2 s. */
  async available(): Promise<boolean> {
    try {
      await callDocker(AVAILABLE_TIMEOUT_MS, () => this.docker.ping());
      return true;
    } catch (error) {
      if (error instanceof DockerUnavailableError || error instanceof DockerRefusedError)
        return false;
      throw error;
    }
  }

  /** Where a listener of this process must be for containers to reach it as `host.docker.internal`. */
  hostAddress(): Promise<string> {
    return hostAddress(this.docker, this.timeoutMs);
  }

  /**
   * The image as it is in Docker, or else pulled.
   *
   * @throws ImageUnavailableError
   */
  ensureImage(image: string, options: PullOptions = {}): Promise<RuntimeImage> {
    return ensureImage(this.docker, image, this.timeoutMs, options);
  }

  /** Adopts or creates the agent's network. @throws SubnetTakenError */
  async ensureNetwork(spec: AgentContainerSpec): Promise<void> {
    await this.networks.ensure(spec);
  }

  /** Adopts or creates the agent's volume. */
  async ensureVolume(spec: AgentContainerSpec): Promise<void> {
    await this.volumes.ensure(spec);
  }

  /**
   * Adopts or creates the agent's container, on its network and volume. One that was made from
   * another specification is replaced. Puts `spec.files` in place unless it runs.
   *
   * @throws ImageUnavailableError when the image is not on Docker.
   */
  ensureContainer(spec: AgentContainerSpec): Promise<{ id: string; created: boolean }> {
    return this.containers.ensure(spec);
  }

  /**
   * Puts files into the state volume, running or not.
   *
   * @throws ContainerMissingError, RangeError for a path that leads out of the volume.
   */
  async writeFiles(agentId: string, files: Readonly<Record<string, string>>): Promise<void> {
    const { Id: id } = await this.named.get(agentId);
    await this.named.putFiles(id, files);
  }

  /** Starts the container, or finds it running. @throws PortTakenError, ContainerMissingError */
  async start(agentId: string): Promise<void> {
    await this.containers.start(agentId);
  }

  /** Asks the container to stop and kills it after the grace. Missing or stopped is well. */
  async stop(agentId: string, graceSeconds: number): Promise<void> {
    await this.containers.stop(agentId, graceSeconds);
  }

  /** Kills the container at once. Missing or stopped is well. */
  async kill(agentId: string): Promise<void> {
    await this.containers.kill(agentId);
  }

  /** What the agent's container is now, or undefined when there is none. */
  async inspect(agentId: string): Promise<ContainerState | undefined> {
    const found = await this.named.find(agentId);
    return found && containerState(found);
  }

  /** Removes the container, running or not, and waits until it is gone. Missing is well. */
  async removeContainer(agentId: string): Promise<void> {
    await this.containers.remove(agentId);
  }

  /** Removes the agent's network. Missing is well; its container goes first. */
  async removeNetwork(agentId: string): Promise<void> {
    await this.networks.remove(agentId);
  }

  /**
   * Removes the agent's volumes with their state, but those that are named, and the containers that
   * are kept beside the agent's own. Missing is well; its container goes first.
   */
  async removeVolumes(agentId: string, kept: readonly string[] = []): Promise<void> {
    await this.spares.removeAll(agentId);
    await this.volumes.removeAllBut(agentId, kept);
  }

  /** Keeps the stopped container under another name, so that a new one can be made. */
  async retainContainer(agentId: string): Promise<void> {
    await this.spares.retainContainer(agentId);
  }

  /** Puts the container that was set aside in the place of the present one; none is well. */
  async restoreContainer(agentId: string): Promise<void> {
    await this.spares.restoreContainer(agentId);
  }

  /** Makes the volume of the specification anew, empty. No container may use it. */
  async renewVolume(spec: AgentContainerSpec): Promise<void> {
    await this.volumes.renew(spec);
  }

  /**
   * Makes the volume of the specification anew, as a copy of another one of the agent's: owners,
   * modes, times and links as there. What uses either should not run.
   *
   * @throws VolumeMissingError
   */
  async copyVolume(spec: AgentContainerSpec, from: string, signal?: AbortSignal): Promise<void> {
    const { agentId } = spec;
    await this.volumes.require(from, agentId);
    await this.spares.removeCopiers(agentId);
    await this.volumes.renew(spec);
    const copiers = await this.spares.createCopiers(spec, { from, to: volumeName(spec) });
    await copyThrough(copiers.from, copiers.to, signal);
    await this.spares.removeCopiers(agentId);
  }

  /** What the container uses; takes Docker a second or two. @throws ContainerMissingError */
  async stats(agentId: string): Promise<ContainerStats> {
    const { Id: id } = await this.named.get(agentId);
    return containerStats(
      await callDocker(this.timeoutMs, () => this.docker.getContainer(id).stats({ stream: false })),
    );
  }

  /**
   * The lines a container wrote, oldest first.
   *
   * @throws ContainerMissingError, InvalidCursorError
   */
  async *logs(agentId: string, options: LogOptions = {}): AsyncGenerator<LogLine> {
    const { Id: id } = await this.named.get(agentId);
    const { since, tail, follow = false, signal } = options;
    const open: OpenLog = (range) =>
      openLog(this.docker, id, this.timeoutMs, { ...range, tail, signal });
    try {
      if (since === undefined) yield* readLog(open, follow);
      else yield* resumeLog(open, since, follow);
    } catch (error) {
      if (signal?.aborted) return;
      throw asContainerError(error);
    }
  }

  /** The container of every agent of this installation; none of those kept beside it. */
  list(): Promise<ContainerSummary[]> {
    return listContainers(this.docker, this.installation, this.timeoutMs);
  }

  /** Ids of the agents whose container runs. */
  running(): Promise<ReadonlySet<string>> {
    return runningAgents(this.docker, this.installation, this.timeoutMs);
  }

  /** Ids of the agents of which this installation has anything in Docker. */
  owners(): Promise<ReadonlySet<string>> {
    return resourceOwners(this.docker, this.installation, this.timeoutMs);
  }

  /** The ends of this installation's containers as they happen, until the signal aborts. */
  events(signal: AbortSignal): AsyncGenerator<ContainerEvent> {
    return followContainers(this.docker, this.installation, signal);
  }
}
