import type Docker from 'dockerode';
import type { SecretsSettings } from '../../platform/secrets/settings.js';
import { AgentContainers } from './agent-containers.js';
import { AgentNetworks } from './agent-networks.js';
import { AgentVolumes } from './agent-volumes.js';
import { ContainerChecks } from './container-checks.js';
import { DockerRefusedError, DockerUnavailableError } from './container-errors.js';
import { type ContainerEvent, followContainers } from './container-events.js';
import { LABEL } from './container-spec.js';
import { type DockerEngine, readEngine } from './docker-engine.js';
import { DockerDisk } from './docker-disk.js';
import { DockerClient, type DockerOptions } from './docker-client.js';
import { NamedContainers } from './named-containers.js';
import { canListen } from './port-check.js';
import { RuntimeImages } from './runtime-images.js';
import { WorkspaceHelpers } from './workspace-helpers.js';
import type { ContainerSettings } from './settings.js';

const AVAILABLE_TIMEOUT_MS = 2_000;
const ENGINE_TIMEOUT_MS = 5_000;

/**
 * An installation's resources on one Docker daemon. Names derive from the agent's id, so every method may be
 * retried. All methods throw DockerUnavailableError on a timeout, and ForeignContainerError, changing
 * nothing, if a name belongs to another owner.
 */
export class DockerHost {
  readonly containers: AgentContainers;
  readonly checks: ContainerChecks;
  readonly networks: AgentNetworks;
  readonly volumes: AgentVolumes;
  readonly images: RuntimeImages;
  readonly disk: DockerDisk;
  readonly workspaces: WorkspaceHelpers;
  readonly #client: DockerClient;

  constructor(options: DockerOptions = {}) {
    const client = new DockerClient(options);
    const named = new NamedContainers(client);
    this.#client = client;
    this.networks = new AgentNetworks(client);
    this.disk = new DockerDisk(client, options.disk ?? { floor: 0, volume: Infinity });
    this.volumes = new AgentVolumes(client, named, this.disk);
    this.containers = new AgentContainers(client, named, this, options.runtime);
    this.checks = new ContainerChecks(client, this.networks, options.runtime);
    this.images = new RuntimeImages(client);
    this.workspaces = new WorkspaceHelpers(client, this.volumes, {
      runtime: options.runtime,
    });
  }

  async available(): Promise<boolean> {
    try {
      await this.#client.call((docker) => docker.ping(), AVAILABLE_TIMEOUT_MS);
      return true;
    } catch (error) {
      if (error instanceof DockerUnavailableError || error instanceof DockerRefusedError)
        return false;
      throw error;
    }
  }

  /** Returns the engine's properties; undefined if it does not answer within 5 s. */
  async engine(): Promise<DockerEngine | undefined> {
    try {
      return await readEngine(this.#client, ENGINE_TIMEOUT_MS);
    } catch (error) {
      if (error instanceof DockerUnavailableError || error instanceof DockerRefusedError)
        return undefined;
      throw error;
    }
  }

  /**
   * Returns the listen address that containers reach as `host.docker.internal`: that of Docker's bridge, or
   * loopback if Docker runs in a virtual machine that forwards to it (Docker Desktop).
   */
  async bridgeAddress(): Promise<string> {
    const bridge: Docker.NetworkInspectInfo = await this.#client.call((docker) =>
      docker.getNetwork('bridge').inspect(),
    );
    const { Gateway, Subnet = '' } = bridge.IPAM?.Config?.[0] ?? {};
    // Older versions do not report the gateway: the first address, `172.17.0.1` of `172.17.0.0/16`.
    const gateway = Gateway || Subnet.replace(/\.\d+\/\d+$/, '.1');
    // Tried by listening, because the list of interfaces omits a bridge without containers.
    return (await canListen(gateway, 0)) ? gateway : '127.0.0.1';
  }

  /** Returns the ids of the agents with a container, network or volume here. */
  async owners(): Promise<ReadonlySet<string>> {
    const filters = this.#ofInstallation();
    const [owners, { Volumes: volumes }] = await Promise.all([
      this.ownersOfContainers(),
      this.#client.call((docker, bound) => docker.listVolumes({ filters, ...bound })),
    ]);
    return new Set([...owners, ...agentsOf(volumes ?? [])]);
  }

  /** Returns the ids of the agents with a container or network here, not those with only a volume. */
  async ownersOfContainers(): Promise<ReadonlySet<string>> {
    const filters = this.#ofInstallation();
    const [containers, networks] = await Promise.all([
      this.#client.listContainers({ all: true, filters }),
      this.#client.call((docker, bound) => docker.listNetworks({ filters, ...bound })),
    ]);
    return new Set([...agentsOf(containers), ...agentsOf(networks)]);
  }

  events(signal: AbortSignal): AsyncGenerator<ContainerEvent> {
    return followContainers(this.#client, signal);
  }

  #ofInstallation(): string {
    const label = [`${LABEL.installation}=${this.#client.installation}`];
    return JSON.stringify({ label });
  }
}

function agentsOf(things: readonly { Labels?: Readonly<Record<string, string>> }[]): string[] {
  return things.flatMap(({ Labels: labels }) => labels?.[LABEL.agent] ?? []);
}

/** Returns the Docker host of the settings, which several installations can share. */
export function configuredDocker(
  settings: {
    readonly containers: ContainerSettings;
    readonly secrets: Pick<SecretsSettings, 'installation'>;
  },
  /** Called before an agent's container starts. */
  mayStart?: () => Promise<void>,
): DockerHost {
  const { installation } = settings.secrets;
  const { dockerHost, runtime, diskFloor: floor, volumeLimit: volume } = settings.containers;
  return new DockerHost({ dockerHost, installation, runtime, disk: { floor, volume }, mayStart });
}
