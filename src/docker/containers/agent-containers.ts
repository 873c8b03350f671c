import { setTimeout as delay } from 'node:timers/promises';
import type Docker from 'dockerode';
import type { AgentNetworks } from './agent-networks.js';
import type { AgentVolumes } from './agent-volumes.js';
import {
  ContainerMissingError,
  DockerRefusedError,
  MemoryMissingError,
  PortTakenError,
} from './container-errors.js';
import { type LogLine, type LogOptions, readContainerLog } from './container-logs.js';
import { AGENT_LIMITS, containerOptions, UPDATABLE_OPTIONS } from './container-profile.js';
import {
  type AgentContainerSpec,
  containerName,
  LABEL,
  spareNames,
  STATE_DIRECTORY,
  volumeName,
} from './container-spec.js';
import {
  type ContainerReading,
  type ContainerState,
  type ContainerStats,
  type ContainerSummary,
  type ContainerWork,
  containerReading,
  containerState,
  containerStats,
  containerSummary,
  containerWork,
  portOf,
} from './container-view.js';
import type { DockerClient } from './docker-client.js';
import { readEngine } from './docker-engine.js';
import { createContainer } from './create-container.js';
import { isLive, OwnContainers } from './own-containers.js';
import { endedOutOfMemory } from './past-death.js';
import type { NamedContainers } from './named-containers.js';
import { canListen, saysPortTaken } from './port-check.js';
import { skillFiles, staleSkills } from './skill-files.js';
import { stateArchive } from './state-archive.js';
import { removeContainer } from './throw-away.js';

const ATTEMPTS = 20;
/** Milliseconds to read the counters of one container of many. */
const READING_MS = 5_000;
const ATTEMPT_PAUSE_MS = 100;

/** Options that agents do not have, and that `docker update` sets and cannot clear. */
const NOT_CLEARABLE = ['CpusetCpus', 'CpusetMems', 'MemoryReservation', 'NanoCpus'] as const;

export class AgentContainers {
  readonly #client: DockerClient;
  readonly #named: NamedContainers;
  readonly #own: OwnContainers;
  readonly #networks: AgentNetworks;
  readonly #volumes: AgentVolumes;
  readonly #runtime: string | undefined;
  #weighsDisks: boolean | undefined;

  constructor(
    client: DockerClient,
    named: NamedContainers,
    { networks, volumes }: { readonly networks: AgentNetworks; readonly volumes: AgentVolumes },
    runtime: string | undefined,
  ) {
    this.#client = client;
    this.#named = named;
    this.#own = new OwnContainers(client);
    this.#networks = networks;
    this.#volumes = volumes;
    this.#runtime = runtime;
  }

  /**
   * Adopts or creates the agent's container, and replaces one of another specification. Installs files and
   * secrets unless it is running, and names skills that are to be removed from its volume.
   * @throws ImageUnavailableError, MemoryMissingError
   */
  async ensure(
    spec: AgentContainerSpec,
  ): Promise<{ id: string; created: boolean; staleSkills: readonly string[] }> {
    const options = containerOptions(spec, this.#client, this.#runtime);
    await this.#volumes.require(spec);
    for (let attempt = 1; ; attempt++) {
      const existing = await this.#own.claim(spec.agentId);
      // Docker marks a container as dead if its removal failed halfway; it never starts again.
      const isDead = existing?.State.Dead === true;
      if (existing && !isDead && (await this.#fits(existing, options.Labels, spec.agentId))) {
        const { Id: id } = existing;
        const stale = existing.State.Running ? [] : await this.#putFiles(id, spec);
        return { id, created: false, staleSkills: stale };
      }
      if (existing) await this.remove(spec.agentId);
      try {
        const id = await createContainer(this.#client, await this.#asTheEngineCan(options));
        await this.#requireVolume(spec);
        return { id, created: true, staleSkills: await this.#putFiles(id, spec) };
      } catch (error) {
        // The name is in use by a concurrent call, or by a container being removed.
        const isTaken = error instanceof DockerRefusedError && error.statusCode === 409;
        if (!isTaken || attempt === ATTEMPTS) throw error;
      }
      await delay(ATTEMPT_PAUSE_MS);
    }
  }

  /** Starts the container unless it is running. @throws PortTakenError, ContainerMissingError */
  async start(agentId: string): Promise<void> {
    const found = await this.#own.claim(agentId);
    if (!found) throw new ContainerMissingError(agentId);
    await this.#networks.attach(agentId, found);
    if (found.State.Paused) {
      await this.#client.call((docker, bound) => docker.getContainer(found.Id).unpause(bound));
    }
    if (found.State.Running) return;
    await this.#restoreOptions(found);
    await this.#client.mayStart();
    const port = portOf(found);
    if (port !== undefined && this.#client.isLocal && !(await canListen('127.0.0.1', port))) {
      throw new PortTakenError(port);
    }
    try {
      await this.#client.callUnless([304], (docker, bound) =>
        docker.getContainer(found.Id).start(bound),
      );
    } catch (error) {
      // A start whose response was lost may still have happened; check the current state.
      const now = await this.#get(agentId);
      if (now.State.Running) return;
      if (port !== undefined && (await this.#failedForPort(port, error))) {
        throw new PortTakenError(port, { cause: error });
      }
      throw error;
    }
  }

  /** Stops the container and kills it after the grace period. A missing or stopped container is no error. */
  async stop(agentId: string, graceSeconds: number): Promise<void> {
    await this.#forAll(agentId, ({ Id: id }) =>
      this.#client.callUnless(
        [304, 404],
        (docker, bound) => docker.getContainer(id).stop({ t: graceSeconds, ...bound }),
        this.#client.timeoutMs + graceSeconds * 1000,
      ),
    );
    // Docker would start a container with another policy when Docker itself starts.
    const stopped = await this.#own.find(agentId);
    if (stopped && !stopped.State.Running) await this.#restoreOptions(stopped);
  }

  /** Kills the container at once. A missing or stopped container is no error. */
  async kill(agentId: string): Promise<void> {
    await this.#forAll(agentId, ({ Id: id }) =>
      this.#client.callUnless([404, 409], (docker, bound) => docker.getContainer(id).kill(bound)),
    );
  }

  /**
   * Removes the container, running or not, and waits until Docker no longer lists it. A missing one is no
   * error.
   */
  async remove(agentId: string): Promise<void> {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const all = await this.#own.all(agentId);
      if (all.length === 0) return;
      for (const { Id: id } of all) await removeContainer(this.#client, id);
      if (attempt > 1) await delay(ATTEMPT_PAUSE_MS);
    }
    throw new DockerRefusedError(
      409,
      `${containerName(agentId)} is still being removed: retry later`,
    );
  }

  /** Renames the stopped container to keep it while a new container is created. */
  async retain(agentId: string): Promise<void> {
    const current = await this.#own.claim(agentId);
    if (!current) return;
    const { previous } = spareNames(agentId);
    // Left over from a replacement that was never completed.
    await this.#named.remove(agentId, previous);
    await this.#rename(current, previous);
  }

  /** Replaces the current container with the retained container, if there is one. */
  async restore(agentId: string): Promise<void> {
    const previous = await this.#named.find(agentId, spareNames(agentId).previous);
    if (!previous) return;
    await this.remove(agentId);
    await this.#rename(previous, containerName(agentId));
  }

  /** Returns the state of the agent's container; undefined if it does not exist. */
  async inspect(agentId: string): Promise<ContainerState | undefined> {
    const found = await this.#own.find(agentId);
    return found && this.#stateOf(found);
  }

  /** Returns the resource usage; Docker takes a second or two. @throws ContainerMissingError */
  async stats(agentId: string): Promise<ContainerStats> {
    const { Id: id } = await this.#get(agentId);
    return containerStats(
      await this.#client.call((docker) => docker.getContainer(id).stats({ stream: false })),
    );
  }

  /** Returns the cumulative work since the start; undefined if the container does not exist. */
  async work(containerId: string): Promise<ContainerWork | undefined> {
    const stats = await this.#counters(containerId);
    return stats && containerWork(stats);
  }

  /** Reads the counters of a container by its id; undefined if the container does not exist or does not run. */
  async reading(containerId: string): Promise<ContainerReading | undefined> {
    const stats = await this.#counters(containerId, READING_MS);
    // Docker answers with zeros for a container that does not run.
    return stats && stats.cpu_stats.cpu_usage.total_usage > 0 ? containerReading(stats) : undefined;
  }

  #counters(id: string, timeoutMs?: number): Promise<Docker.ContainerStats | undefined> {
    return this.#client.callUnless(
      [404],
      (docker, bound) =>
        docker.getContainer(id).stats({ stream: false, 'one-shot': true, ...bound }),
      timeoutMs,
    );
  }

  /** Yields the log lines, oldest first. @throws ContainerMissingError, InvalidCursorError */
  async *logs(agentId: string, options: LogOptions = {}): AsyncGenerator<LogLine> {
    const { Id: id } = await this.#get(agentId);
    yield* readContainerLog(this.#client, id, options);
  }

  /** Lists the current container of every agent of this installation, without retained containers. */
  async list(): Promise<ContainerSummary[]> {
    return (await this.#own.ofAllAgents()).map(containerSummary);
  }

  async running(): Promise<ReadonlySet<string>> {
    const all = await this.#own.ofAllAgents();
    const running = all.filter(({ State: state }) => state === 'running');
    return new Set(running.map(({ Labels: labels }) => labels[LABEL.agent] ?? ''));
  }

  /** Removes manually created containers with an agent's labels beside the agent's own; returns their names. */
  removeStrays(): Promise<string[]> {
    return this.#own.removeStrays();
  }

  /** Adapts options after the fingerprint: an engine's capabilities are no change of specification. */
  async #asTheEngineCan(options: Docker.ContainerCreateOptions) {
    this.#weighsDisks ??= (await readEngine(this.#client)).weighsDisks;
    if (!this.#weighsDisks) return options;
    const BlkioWeight = AGENT_LIMITS.blockIoWeight;
    return { ...options, HostConfig: { ...options.HostConfig, BlkioWeight } };
  }

  /** Checks that the volume exists, and removes the empty one that Docker recreates in its place. */
  async #requireVolume(spec: AgentContainerSpec): Promise<void> {
    if (await this.#volumes.find(spec)) return;
    await this.remove(spec.agentId);
    await this.#volumes.removeMadeIn(spec, () => false);
    throw new MemoryMissingError(volumeName(spec));
  }

  async #stateOf(found: Docker.ContainerInspectInfo): Promise<ContainerState> {
    return containerState(found, await endedOutOfMemory(this.#client, found));
  }

  /** Undoes a `docker update`. */
  async #restoreOptions({ HostConfig: now, Id: id }: Docker.ContainerInspectInfo): Promise<void> {
    const { RestartPolicy: policy, ...limits } = UPDATABLE_OPTIONS;
    const isAsMade =
      now.RestartPolicy?.Name === policy.Name &&
      Object.entries(limits).every(([name, value]) => Reflect.get(now, name) === value);
    if (isAsMade) return;
    // A container that is being removed cannot be updated.
    await this.#client.callUnless([404, 409], (docker) =>
      docker.getContainer(id).update(UPDATABLE_OPTIONS),
    );
  }

  /** Changes the agent's container, and strays, as far as they run. */
  async #forAll(
    agentId: string,
    change: (container: Docker.ContainerInfo) => Promise<unknown>,
  ): Promise<void> {
    const all = await this.#own.all(agentId);
    await Promise.all(all.filter(isLive).map(change));
  }

  async #get(agentId: string): Promise<Docker.ContainerInspectInfo> {
    const found = await this.#own.find(agentId);
    if (!found) throw new ContainerMissingError(agentId);
    return found;
  }

  /** Writes files, secrets and skills into the volume, and returns skills that are to be removed. */
  async #putFiles(id: string, spec: AgentContainerSpec): Promise<string[]> {
    const { secrets, skills } = spec;
    const stale = skills ? await staleSkills(this.#client, id, skills) : [];
    const files = { ...spec.files, ...skillFiles(skills ?? {}, stale) };
    if (Object.keys({ ...files, ...secrets }).length === 0) return stale;
    const archive = await stateArchive({ files, secrets });
    await this.#client.call((docker, bound) =>
      docker.getContainer(id).putArchive(archive, { path: STATE_DIRECTORY, ...bound }),
    );
    return stale;
  }

  async #rename({ Id: id }: Docker.ContainerInspectInfo, name: string): Promise<void> {
    await this.#client.call((docker, bound) => docker.getContainer(id).rename({ name, ...bound }));
  }

  /** Reports whether a container was made from exactly these options and is still on its network. */
  async #fits(
    container: Docker.ContainerInspectInfo,
    labels: Readonly<Record<string, string>> | undefined,
    agentId: string,
  ): Promise<boolean> {
    if (container.Config.Labels[LABEL.spec] !== labels?.[LABEL.spec]) return false;
    if (container.State.Status === 'removing' || container.State.Dead) return false;
    // Set by `docker update`, which cannot clear them.
    if (NOT_CLEARABLE.some((name) => Boolean(container.HostConfig[name]))) return false;
    // A container that has run stores the network's id and cannot start on a new network of the same name.
    const attached = container.NetworkSettings.Networks[containerName(agentId)]?.NetworkID;
    return !attached || attached === (await this.#networks.find(agentId))?.Id;
  }

  async #failedForPort(port: number, error: unknown): Promise<boolean> {
    if (!(error instanceof DockerRefusedError)) return false;
    const filters = { publish: [`${port}`], status: ['running'] };
    const publishing = await this.#client.listContainers({ filters });
    if (publishing.length > 0) return true;
    return this.#client.isLocal ? !(await canListen('127.0.0.1', port)) : saysPortTaken(error);
  }
}
