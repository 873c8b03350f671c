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
import { AGENT_LIMITS, containerOptions } from './container-profile.js';
import {
  type AgentContainerSpec,
  containerName,
  LABEL,
  spareNames,
  STATE_DIRECTORY,
  volumeName,
} from './container-spec.js';
import {
  type ContainerState,
  type ContainerStats,
  type ContainerSummary,
  type ContainerWork,
  containerState,
  containerStats,
  containerSummary,
  containerWork,
} from './container-view.js';
import type { DockerClient } from './docker-client.js';
import { readEngine } from './docker-engine.js';
import type { NamedContainers } from './named-containers.js';
import { canListen, saysPortTaken } from './port-check.js';
import { stateArchive } from './state-archive.js';

const ATTEMPTS = 20;
const ATTEMPT_PAUSE_MS = 100;

/** The one container that each agent runs in, from its making to its removal. */
export class AgentContainers {
  readonly #client: DockerClient;
  readonly #named: NamedContainers;
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
    this.#networks = networks;
    this.#volumes = volumes;
    this.#runtime = runtime;
  }

  /**
   * Adopts or creates the agent's container, on its network and volume. One that was made from
   * another specification is replaced. Puts files and secrets in place unless it runs.
   *
   * @throws ImageUnavailableError when Docker does not have the image.
   * @throws MemoryMissingError when the volume is not there.
   */
  async ensure(spec: AgentContainerSpec): Promise<{ id: string; created: boolean }> {
    const options = containerOptions(spec, this.#client, this.#runtime);
    await this.#volumes.require(spec);
    for (let attempt = 1; ; attempt++) {
      const existing = await this.#find(spec.agentId);
      // One that Docker could not remove whole is dead, and never starts again.
      const isDead = existing?.State.Dead === true;
      if (existing && !isDead && (await this.#fits(existing, options.Labels, spec.agentId))) {
        if (!existing.State.Running) await this.#putFiles(existing.Id, spec);
        return { id: existing.Id, created: false };
      }
      if (existing) await this.remove(spec.agentId);
      try {
        const id = await this.#named.create(await this.#asTheEngineCan(options));
        await this.#requireVolume(spec);
        await this.#putFiles(id, spec);
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
    const found = await this.#get(agentId);
    if (found.State.Running) return;
    await this.#client.mayStart();
    const { port } = containerState(found);
    if (port !== undefined && this.#client.isLocal && !(await canListen('127.0.0.1', port))) {
      throw new PortTakenError(port);
    }
    try {
      await this.#client.callUnless([304], (docker, bound) =>
        docker.getContainer(found.Id).start(bound),
      );
    } catch (error) {
      // A start that was not heard of may have happened: what is there now decides.
      const now = await this.#get(agentId);
      if (now.State.Running) return;
      if (port !== undefined && (await this.#failedForPort(port, error))) {
        throw new PortTakenError(port, { cause: error });
      }
      throw error;
    }
  }

  /** Asks the container to stop and kills it after the grace. Missing or stopped is well. */
  async stop(agentId: string, graceSeconds: number): Promise<void> {
    const found = await this.#find(agentId);
    if (!found?.State.Running) return;
    await this.#client.callUnless(
      [304, 404],
      (docker, bound) => docker.getContainer(found.Id).stop({ t: graceSeconds, ...bound }),
      this.#client.timeoutMs + graceSeconds * 1000,
    );
  }

  /** Kills the container at once. Missing or stopped is well. */
  async kill(agentId: string): Promise<void> {
    const found = await this.#find(agentId);
    if (!found?.State.Running) return;
    await this.#client.callUnless([404, 409], (docker, bound) =>
      docker.getContainer(found.Id).kill(bound),
    );
  }

  /** Removes the container, running or not, and waits until it is gone. Missing is well. */
  async remove(agentId: string): Promise<void> {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      if (!(await this.#named.remove(agentId, containerName(agentId)))) return;
      if (attempt > 1) await delay(ATTEMPT_PAUSE_MS);
    }
    throw new DockerRefusedError(409, `${containerName(agentId)} is still being removed`);
  }

  /** Keeps the stopped container under another name, so that a new one can be made. */
  async retain(agentId: string): Promise<void> {
    const current = await this.#find(agentId);
    if (!current) return;
    const { previous } = spareNames(agentId);
    // One from a replacement that nobody has brought to its end.
    await this.#named.remove(agentId, previous);
    await this.#rename(current, previous);
  }

  /** Puts the container that was retained in the place of the present one; none is well. */
  async restore(agentId: string): Promise<void> {
    const previous = await this.#named.find(agentId, spareNames(agentId).previous);
    if (!previous) return;
    await this.#named.remove(agentId, containerName(agentId));
    await this.#rename(previous, containerName(agentId));
  }

  /** What the agent's container is now, or undefined when there is none. */
  async inspect(agentId: string): Promise<ContainerState | undefined> {
    const found = await this.#find(agentId);
    return found && containerState(found);
  }

  /** What the container uses; takes Docker a second or two. @throws ContainerMissingError */
  async stats(agentId: string): Promise<ContainerStats> {
    const { Id: id } = await this.#get(agentId);
    return containerStats(
      await this.#client.call((docker) => docker.getContainer(id).stats({ stream: false })),
    );
  }

  /** What the container of that id has done since its start; undefined when there is none. */
  async work(containerId: string): Promise<ContainerWork | undefined> {
    const stats = await this.#client.callUnless([404], (docker, bound) =>
      docker.getContainer(containerId).stats({ stream: false, 'one-shot': true, ...bound }),
    );
    return stats && containerWork(stats);
  }

  /**
   * The lines that the container wrote, oldest first.
   *
   * @throws ContainerMissingError, InvalidCursorError
   */
  async *logs(agentId: string, options: LogOptions = {}): AsyncGenerator<LogLine> {
    const { Id: id } = await this.#get(agentId);
    yield* readContainerLog(this.#client, id, options);
  }

  /** The container of every agent of this installation; none of those kept beside it. */
  async list(): Promise<ContainerSummary[]> {
    return (await this.#list()).map(containerSummary);
  }

  /** Ids of the agents whose container runs. */
  async running(): Promise<ReadonlySet<string>> {
    const running = await this.#list('running');
    return new Set(running.map(({ Labels: labels }) => labels[LABEL.agent] ?? ''));
  }

  async #list(status?: 'running'): Promise<Docker.ContainerInfo[]> {
    const label = [`${LABEL.installation}=${this.#client.installation}`];
    const filters = { label, ...(status && { status: [status] }) };
    const containers = await this.#client.call((docker, bound) =>
      docker.listContainers({ all: true, filters, ...bound }),
    );
    // By name: other containers of the agent have the same labels.
    return containers.filter(({ Labels: labels, Names: names }) =>
      names.includes(`/${containerName(labels[LABEL.agent] ?? '')}`),
    );
  }

  /** After the fingerprint is made: what an engine can do is no difference between specifications. */
  async #asTheEngineCan(options: Docker.ContainerCreateOptions) {
    this.#weighsDisks ??= (await readEngine(this.#client)).weighsDisks;
    if (!this.#weighsDisks) return options;
    const BlkioWeight = AGENT_LIMITS.blockIoWeight;
    return { ...options, HostConfig: { ...options.HostConfig, BlkioWeight } };
  }

  /** Docker makes a volume that went away just before: it is empty, and goes again. */
  async #requireVolume(spec: AgentContainerSpec): Promise<void> {
    if (await this.#volumes.find(spec)) return;
    await this.remove(spec.agentId);
    await this.#volumes.removeMadeIn(spec, () => false);
    throw new MemoryMissingError(volumeName(spec));
  }

  #find(agentId: string): Promise<Docker.ContainerInspectInfo | undefined> {
    return this.#named.find(agentId, containerName(agentId));
  }

  async #get(agentId: string): Promise<Docker.ContainerInspectInfo> {
    const found = await this.#find(agentId);
    if (!found) throw new ContainerMissingError(agentId);
    return found;
  }

  async #putFiles(id: string, spec: AgentContainerSpec): Promise<void> {
    if (Object.keys({ ...spec.files, ...spec.secrets }).length === 0) return;
    const archive = await stateArchive(spec);
    await this.#client.call((docker, bound) =>
      docker.getContainer(id).putArchive(archive, { path: STATE_DIRECTORY, ...bound }),
    );
  }

  async #rename({ Id: id }: Docker.ContainerInspectInfo, name: string): Promise<void> {
    await this.#client.call((docker, bound) => docker.getContainer(id).rename({ name, ...bound }));
  }

  /** Whether a container was made from these very options and still belongs to its network. */
  async #fits(
    container: Docker.ContainerInspectInfo,
    labels: Readonly<Record<string, string>> | undefined,
    agentId: string,
  ): Promise<boolean> {
    if (container.Config.Labels[LABEL.spec] !== labels?.[LABEL.spec]) return false;
    if (container.State.Status === 'removing' || container.State.Dead) return false;
    // One that ran before remembers the network by id, and cannot start on a new one of that name.
    const attached = container.NetworkSettings.Networks[containerName(agentId)]?.NetworkID;
    return !attached || attached === (await this.#networks.find(agentId))?.Id;
  }

  async #failedForPort(port: number, error: unknown): Promise<boolean> {
    if (!(error instanceof DockerRefusedError)) return false;
    const filters = { publish: [`${port}`], status: ['running'] };
    const publishing = await this.#client.call((docker, bound) =>
      docker.listContainers({ filters, ...bound }),
    );
    if (publishing.length > 0) return true;
    return this.#client.isLocal ? !(await canListen('127.0.0.1', port)) : saysPortTaken(error);
  }
}
