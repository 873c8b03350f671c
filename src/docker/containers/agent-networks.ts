import { setTimeout as delay } from 'node:timers/promises';
import type Docker from 'dockerode';
import { addressRange } from './address-range.js';
import { bridgeName } from './bridge-name.js';
import { type AgentContainerSpec, containerName } from './container-spec.js';
import { DockerRefusedError, ForeignContainerError, SubnetTakenError } from './container-errors.js';
import { isOurs, ownershipLabels } from './container-profile.js';
import type { DockerClient } from './docker-client.js';
import { removeHelpersOf } from './helper-leftovers.js';
import { hostRoutes } from './host-routes.js';

export const BRIDGE_NAME = 'com.docker.network.bridge.name';

/**
 * Prefix length of a route that may cover the whole pool (`AGENT_SUBNET_POOL`), as its operator chose; an
 * agent's narrower network takes precedence.
 */
const WHOLE_POOL_BITS = 16;

/** Docker's status for a network that has containers. */
const IN_USE = 403;
const REMOVALS = 3;

/**
 * Docker reserves a subnet before it lists the network; the listing follows within two seconds, even under
 * load.
 */
const LISTINGS = 40;
const LISTING_PAUSE_MS = 50;

export class AgentNetworks {
  readonly #client: DockerClient;

  constructor(client: DockerClient) {
    this.#client = client;
  }

  async find(agentId: string): Promise<Docker.NetworkInspectInfo | undefined> {
    const name = containerName(agentId);
    // Docker's network names are not unique, and the filter also matches parts of names.
    const filters = JSON.stringify({ name: [name] });
    const networks = await this.#client.call((docker, bound) =>
      docker.listNetworks({ filters, ...bound }),
    );
    const named = networks.filter((network) => network.Name === name);
    const foreign = named.some(({ Labels }) => !isOurs(Labels, agentId, this.#client));
    if (foreign) throw new ForeignContainerError('network', name);
    return named[0];
  }

  /** Adopts or creates the network; replaces one with another subnet or bridge. @throws SubnetTakenError */
  async ensure(spec: AgentContainerSpec): Promise<void> {
    const bridge = bridgeName(this.#client.installation, spec.subnet);
    const existing = await this.find(spec.agentId);
    if (existing) {
      const isAsWanted = existing.Options?.[BRIDGE_NAME] === bridge && !existing.EnableIPv6;
      if (isAsWanted && subnetOf(existing) === spec.subnet) return;
      await this.remove(spec.agentId);
    }
    // Docker checks only its own networks, and an agent on a subnet with two routes would be unreachable.
    const routed = await this.#routedElsewhere([bridge]);
    if (routed.some((used) => areOverlapping(used, spec.subnet))) {
      throw new SubnetTakenError(spec.subnet);
    }
    try {
      await this.#client.call((docker, bound) =>
        docker.createNetwork({
          Name: containerName(spec.agentId),
          Driver: 'bridge',
          CheckDuplicate: true,
          // Docker may be configured to enable IPv6 for networks by default.
          EnableIPv6: false,
          Options: { [BRIDGE_NAME]: bridge },
          // Explicit, because Docker's default pools suffice for only about 30 networks.
          IPAM: { Driver: 'default', Config: [{ Subnet: spec.subnet }] },
          Labels: ownershipLabels(spec, this.#client),
          ...bound,
        }),
      );
    } catch (error) {
      if (!(error instanceof DockerRefusedError)) throw error;
      if (await this.#isMadeConcurrently(spec)) return;
      if (error.statusCode === 403 || (await this.#overlaps(spec))) {
        throw new SubnetTakenError(spec.subnet, { cause: error });
      }
      throw error;
    }
  }

  /**
   * Reports whether a concurrent call created the network. The list is read again while nothing in it
   * overlaps, because Docker reserves a subnet before it lists the network.
   */
  async #isMadeConcurrently(spec: AgentContainerSpec): Promise<boolean> {
    for (let listing = 1; listing <= LISTINGS; listing++) {
      const made = await this.find(spec.agentId);
      if (made) return subnetOf(made) === spec.subnet;
      if (await this.#overlaps(spec)) return (await this.find(spec.agentId)) !== undefined;
      await delay(LISTING_PAUSE_MS);
    }
    return false;
  }

  /** Removes the network, if any, and the helpers on it; the container must be removed first. */
  async remove(agentId: string): Promise<void> {
    const network = await this.find(agentId);
    if (!network) return;
    for (let attempt = 1; ; attempt++) {
      await removeHelpersOf(this.#client, { network: network.Id });
      try {
        await this.#client.callUnless([404], (docker, bound) =>
          docker.getNetwork(network.Id).remove(bound),
        );
        return;
      } catch (error) {
        // A container is on the network: a helper may have started in between.
        const isInUse = error instanceof DockerRefusedError && error.statusCode === IN_USE;
        if (!isInUse || attempt === REMOVALS) throw error;
      }
    }
  }

  /**
   * Connects a container that was manually disconnected from its network, and disconnects it from all others.
   * @throws DockerRefusedError with 404, as a start does, if the network is missing.
   */
  async attach(agentId: string, container: Docker.ContainerInspectInfo): Promise<void> {
    const { [containerName(agentId)]: own, ...others } = container.NetworkSettings.Networks;
    for (const other of Object.keys(others)) {
      await this.#client.callUnless([404], (docker, bound) =>
        docker.getNetwork(other).disconnect({ Container: container.Id, Force: true, ...bound }),
      );
    }
    if (own) return;
    const network = await this.find(agentId);
    if (!network) throw new DockerRefusedError(404, `network ${containerName(agentId)} not found`);
    await this.#client.call((docker, bound) =>
      docker.getNetwork(network.Id).connect({ Container: container.Id, ...bound }),
    );
  }

  /**
   * Returns the subnets of all other networks, and those that the host routes outside Docker.
   *
   * @param bridge the agent's own bridge, which has a route before Docker lists its network
   */
  async takenSubnets(agentId: string, bridge?: string): Promise<string[]> {
    const networks = await this.#client.call((docker, bound) => docker.listNetworks(bound));
    const isOwn = ({ Name }: Docker.NetworkInspectInfo) => Name === containerName(agentId);
    const own = networks.filter(isOwn).map(({ Options }) => Options?.[BRIDGE_NAME]);
    const ofOthers = networks
      .filter((network) => !isOwn(network))
      .flatMap((network) => network.IPAM?.Config ?? [])
      .flatMap(({ Subnet: subnet }) => (subnet?.includes('.') ? [subnet] : []));
    return [...ofOthers, ...(await this.#routedElsewhere([...own, bridge]))];
  }

  /** @param bridges bridges whose routes are ignored. */
  async #routedElsewhere(bridges: readonly (string | undefined)[]): Promise<string[]> {
    if (!this.#client.isLocal) return [];
    return (await hostRoutes())
      .filter(({ device, subnet }) => {
        const [, bits] = subnet.split('/');
        return !bridges.includes(device) && Number(bits) > WHOLE_POOL_BITS;
      })
      .map(({ subnet }) => subnet);
  }

  async #overlaps({ agentId, subnet }: AgentContainerSpec): Promise<boolean> {
    const bridge = bridgeName(this.#client.installation, subnet);
    const taken = await this.takenSubnets(agentId, bridge);
    return taken.some((used) => areOverlapping(used, subnet));
  }
}

function areOverlapping(one: string, other: string): boolean {
  const [used, wanted] = [addressRange(one), addressRange(other)];
  return used.first <= wanted.last && wanted.first <= used.last;
}

function subnetOf(network: Docker.NetworkInspectInfo): string | undefined {
  return network.IPAM?.Config?.[0]?.Subnet;
}
