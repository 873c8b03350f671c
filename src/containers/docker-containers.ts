import { setTimeout as delay } from 'node:timers/promises';
import type Docker from 'dockerode';
import {
  type AgentContainerSpec,
  containerName,
  type ContainerState,
  type ContainerStats,
  type ContainerSummary,
  LABEL,
  type LogLine,
  type LogOptions,
  STATE_DIRECTORY,
  volumeName,
} from './agent-container.js';
import { AgentNetworks } from './agent-network.js';
import { AgentVolumes } from './agent-volume.js';
import {
  ContainerMissingError,
  EngineRefusedError,
  EngineUnavailableError,
  ForeignContainerError,
  ImageUnavailableError,
  PortTakenError,
} from './container-errors.js';
import { type ContainerNews, followContainers } from './container-events.js';
import { openLog } from './log-stream.js';
import { type OpenLog, readLog, resumeLog } from './container-logs.js';
import { containerOptions, isOurs, ownershipLabels } from './container-profile.js';
import { containerState, containerStats, containerSummary } from './container-view.js';
import { asContainerError, callEngine, callEngineUnless, connectEngine } from './engine.js';
import { hostAddress } from './host-address.js';
import { isLoopbackPortFree, saysPortTaken } from './port-check.js';
import { resourceOwners } from './resource-owners.js';
import { findImage, pullImage, type PullOptions, type RuntimeImage } from './runtime-image.js';
import { copyNames, SpareContainers } from './spare-containers.js';
import { stateArchive } from './state-archive.js';
import { copyBind, copyThrough } from './volume-copy.js';

export interface DockerContainersOptions {
  /** As in `DOCKER_HOST`; the engine's usual socket when left out. */
  readonly dockerHost?: string | undefined;
  /** Tells apart installations that share an engine; what belongs to another one is refused. */
  readonly installation?: string | undefined;
  /** Bound for a usual call, in milliseconds. */
  readonly timeoutMs?: number | undefined;
}

const AVAILABLE_TIMEOUT_MS = 2_000;
const ATTEMPTS = 20;
const ATTEMPT_PAUSE_MS = 100;

/**
 * The agents' containers, networks and volumes on one Docker engine. Names follow from the agent's
 * id, so every method can be called again after a call that was not heard of: it finds what is
 * there. All of them throw EngineUnavailableError when the engine does not answer in time, and
 * ForeignContainerError, touching nothing, when a name is taken by what is not ours.
 */
export class DockerContainers {
  private readonly docker: Docker;
  private readonly networks: AgentNetworks;
  private readonly volumes: AgentVolumes;
  private readonly spares: SpareContainers;
  private readonly installation: string;
  private readonly timeoutMs: number;
  private readonly engineIsLocal: boolean;

  constructor(options: DockerContainersOptions = {}) {
    this.docker = connectEngine(options.dockerHost);
    this.installation = options.installation ?? 'default';
    this.timeoutMs = options.timeoutMs ?? 30_000;
    this.networks = new AgentNetworks(this.docker, this.installation, this.timeoutMs);
    this.volumes = new AgentVolumes(this.docker, this.installation, this.timeoutMs);
    this.spares = new SpareContainers(this.docker, this.installation, this.timeoutMs);
    this.engineIsLocal = !/^(tcp|https?):/.test(options.dockerHost ?? '');
  }

  /** Whether the engine answers, within 2 s. */
  async available(): Promise<boolean> {
    try {
      await callEngine(AVAILABLE_TIMEOUT_MS, () => this.docker.ping());
      return true;
    } catch (error) {
      if (error instanceof EngineUnavailableError || error instanceof EngineRefusedError)
        return false;
      throw error;
    }
  }

  /** Where a listener of this process must be for containers to reach it as `host.docker.internal`. */
  hostAddress(): Promise<string> {
    return hostAddress(this.docker, this.timeoutMs);
  }

  /**
   * The image as it is on the engine, or else pulled.
   *
   * @throws ImageUnavailableError
   */
  async ensureImage(image: string, options: PullOptions = {}): Promise<RuntimeImage> {
    const local = await findImage(this.docker, image, this.timeoutMs);
    if (local) return local;
    await pullImage(this.docker, image, options);
    const pulled = await findImage(this.docker, image, this.timeoutMs);
    if (!pulled) throw new ImageUnavailableError(image);
    return pulled;
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
   * @throws ImageUnavailableError when the image is not on the engine.
   */
  async ensureContainer(spec: AgentContainerSpec): Promise<{ id: string; created: boolean }> {
    const options = containerOptions(spec, this.installation);
    for (let attempt = 1; ; attempt++) {
      const existing = await this.find(spec.agentId);
      if (existing && (await this.fits(existing, options.Labels, spec.agentId))) {
        if (!existing.State.Running) await this.putFiles(existing.Id, spec.files);
        return { id: existing.Id, created: false };
      }
      if (existing) await this.removeContainer(spec.agentId);
      try {
        const id = await this.create(options);
        await this.putFiles(id, spec.files);
        return { id, created: true };
      } catch (error) {
        // The name is taken: by another call like this, or by one being removed.
        const isTaken = error instanceof EngineRefusedError && error.statusCode === 409;
        if (!isTaken || attempt === ATTEMPTS) throw error;
      }
      await delay(ATTEMPT_PAUSE_MS);
    }
  }

  /**
   * Puts files into the state volume, running or not.
   *
   * @throws ContainerMissingError, RangeError for a path that leads out of the volume.
   */
  async writeFiles(agentId: string, files: Readonly<Record<string, string>>): Promise<void> {
    const { Id: id } = await this.get(agentId);
    await this.putFiles(id, files);
  }

  /** Starts the container, or finds it running. @throws PortTakenError, ContainerMissingError */
  async start(agentId: string): Promise<void> {
    const found = await this.get(agentId);
    if (found.State.Running) return;
    const { port } = containerState(found);
    if (port !== undefined && this.engineIsLocal && !(await isLoopbackPortFree(port))) {
      throw new PortTakenError(port);
    }
    try {
      await this.callUnless([304], (abortSignal) =>
        this.docker.getContainer(found.Id).start({ abortSignal }),
      );
    } catch (error) {
      // A start that was not heard of may have happened: what is there now decides.
      const now = await this.get(agentId);
      if (now.State.Running) return;
      if (port !== undefined && (await this.failedForPort(port, error))) {
        throw new PortTakenError(port, { cause: error });
      }
      throw error;
    }
  }

  /** Asks the container to stop and kills it after the grace. Missing or stopped is well. */
  async stop(agentId: string, graceSeconds: number): Promise<void> {
    const found = await this.find(agentId);
    if (!found?.State.Running) return;
    const bound = this.timeoutMs + graceSeconds * 1000;
    await callEngineUnless([304, 404], bound, (abortSignal) =>
      this.docker.getContainer(found.Id).stop({ t: graceSeconds, abortSignal }),
    );
  }

  /** Kills the container at once. Missing or stopped is well. */
  async kill(agentId: string): Promise<void> {
    const found = await this.find(agentId);
    if (!found?.State.Running) return;
    await this.callUnless([404, 409], (abortSignal) =>
      this.docker.getContainer(found.Id).kill({ abortSignal }),
    );
  }

  /** What the agent's container is now, or undefined when there is none. */
  async inspect(agentId: string): Promise<ContainerState | undefined> {
    const found = await this.find(agentId);
    return found && containerState(found);
  }

  /** Removes the container, running or not, and waits until it is gone. Missing is well. */
  async removeContainer(agentId: string): Promise<void> {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const found = await this.find(agentId);
      if (!found) return;
      // 409: it is being removed already.
      await this.callUnless([404, 409], (abortSignal) =>
        this.docker.getContainer(found.Id).remove({ force: true, v: true, abortSignal }),
      );
      if (attempt > 1) await delay(ATTEMPT_PAUSE_MS);
    }
    throw new EngineRefusedError(409, `${containerName(agentId)} is still being removed`);
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
  async setAside(agentId: string): Promise<void> {
    await this.spares.setAside(agentId);
  }

  /** Puts the container that was set aside in the place of the present one; none is well. */
  async takeBack(agentId: string): Promise<void> {
    await this.spares.takeBack(agentId);
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
    const names = copyNames(agentId);
    await copyThrough(
      await this.createCopier(spec, names.from, from),
      await this.createCopier(spec, names.to, volumeName(spec)),
      signal,
    );
    await this.spares.removeCopiers(agentId);
  }

  /** What the container uses; takes the engine a second or two. @throws ContainerMissingError */
  async stats(agentId: string): Promise<ContainerStats> {
    const { Id: id } = await this.get(agentId);
    return containerStats(
      await this.call(() => this.docker.getContainer(id).stats({ stream: false })),
    );
  }

  /**
   * The lines a container wrote, oldest first.
   *
   * @throws ContainerMissingError, InvalidCursorError
   */
  async *logs(agentId: string, options: LogOptions = {}): AsyncGenerator<LogLine> {
    const { Id: id } = await this.get(agentId);
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
  async list(): Promise<ContainerSummary[]> {
    const filters = { label: [`${LABEL.installation}=${this.installation}`] };
    const containers = await this.call((abortSignal) =>
      this.docker.listContainers({ all: true, filters, abortSignal }),
    );
    return containers
      .filter(({ Labels, Names }) => Names.includes(`/${containerName(Labels[LABEL.agent] ?? '')}`))
      .map(containerSummary);
  }

  /** Ids of the agents whose container runs. */
  async running(): Promise<ReadonlySet<string>> {
    const filters = { label: [`${LABEL.installation}=${this.installation}`], status: ['running'] };
    const containers = await this.call((abortSignal) =>
      this.docker.listContainers({ filters, abortSignal }),
    );
    return new Set(
      containers
        .map(({ Names: names, Labels: labels }) => ({ names, agentId: labels[LABEL.agent] ?? '' }))
        .filter(({ names, agentId }) => names.includes(`/${containerName(agentId)}`))
        .map(({ agentId }) => agentId),
    );
  }

  /** Ids of the agents of which this installation has anything on the engine. */
  owners(): Promise<ReadonlySet<string>> {
    return resourceOwners(this.docker, this.installation, this.timeoutMs);
  }

  /** The ends of this installation's containers as they happen, until the signal aborts. */
  news(signal: AbortSignal): AsyncGenerator<ContainerNews> {
    return followContainers(this.docker, this.installation, signal);
  }

  /** @throws ImageUnavailableError, EngineRefusedError with 409 when the name is taken. */
  private async create(options: Docker.ContainerCreateOptions): Promise<string> {
    try {
      const { id } = await this.call((abortSignal) =>
        this.docker.createContainer({ ...options, abortSignal }),
      );
      return id;
    } catch (error) {
      if (error instanceof EngineRefusedError && error.statusCode === 404) {
        throw new ImageUnavailableError(options.Image ?? '', { cause: error });
      }
      throw error;
    }
  }

  private async createCopier(
    spec: AgentContainerSpec,
    name: string,
    volume: string,
  ): Promise<Docker.Container> {
    const id = await this.create({
      name,
      Image: spec.image,
      Labels: ownershipLabels(spec, this.installation),
      HostConfig: { NetworkMode: 'none', Binds: [copyBind(volume)] },
    });
    return this.docker.getContainer(id);
  }

  private async putFiles(id: string, files: Readonly<Record<string, string>>): Promise<void> {
    if (Object.keys(files).length === 0) return;
    const archive = await stateArchive(files);
    await this.call((abortSignal) =>
      this.docker.getContainer(id).putArchive(archive, { path: STATE_DIRECTORY, abortSignal }),
    );
  }

  private async find(agentId: string): Promise<Docker.ContainerInspectInfo | undefined> {
    const name = containerName(agentId);
    const found = await this.callUnless([404], (abortSignal) =>
      this.docker.getContainer(name).inspect({ abortSignal }),
    );
    if (found && !isOurs(found.Config.Labels, agentId, this.installation)) {
      throw new ForeignContainerError('container', name);
    }
    return found;
  }

  private async get(agentId: string): Promise<Docker.ContainerInspectInfo> {
    const found = await this.find(agentId);
    if (!found) throw new ContainerMissingError(agentId);
    return found;
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
    if (!(error instanceof EngineRefusedError)) return false;
    const filters = { publish: [`${port}`], status: ['running'] };
    const publishing = await this.call((abortSignal) =>
      this.docker.listContainers({ filters, abortSignal }),
    );
    if (publishing.length > 0) return true;
    return this.engineIsLocal ? !(await isLoopbackPortFree(port)) : saysPortTaken(error);
  }

  private call<T>(call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return callEngine(this.timeoutMs, call);
  }

  private callUnless<T>(statuses: readonly number[], call: (signal: AbortSignal) => Promise<T>) {
    return callEngineUnless(statuses, this.timeoutMs, call);
  }
}
