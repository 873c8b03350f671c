import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { networkInterfaces } from 'node:os';
import * as z from 'zod';
import { BRIDGE_NAME } from '../containers/agent-networks.js';
import { bridgeName, bridgePrefix } from '../containers/bridge-name.js';
import { DockerRefusedError } from '../containers/container-errors.js';
import { LABEL } from '../containers/container-spec.js';
import type { DockerClient } from '../containers/docker-client.js';
import { type AllowedNetwork, egressChain, type EgressRules, egressRules } from './egress-rules.js';
import { HelperContainers } from './helper-containers.js';
import { requireHelperImage } from './helper-image.js';
import { NEIGHBOUR, SET_RULES, TRY } from './programs.js';

/**
 * Milliseconds of a connection attempt: a busy machine answers slowly; dropped packets never get an answer.
 */
const TRY_MS = 2_000;

const MAX_ADDRESSES = 32;

/** Maximum number of subnets tried for the probe's network, from the end of the pool: agents begin at its start. */
const MAX_SUBNETS = 64;

export interface EgressOptions {
  /** Name of the helper image, in production with its digest. */
  readonly image: string;
  /** Pool of subnets for agents' networks, such as `10.231.0.0/16`. */
  readonly subnetPool: string;
  readonly aiPort: number;
  readonly allow: readonly AllowedNetwork[];
}

/** Destinations that the probe reached from a network like an agent's. */
export interface EgressProbe {
  /** Addresses of the host and of private networks that agents reach but must not. */
  readonly reached: readonly string[];
  /** Packets reach the AI listener's port, even when it is not running. */
  readonly reachesAi: boolean;
  /** Agents have IPv6 addresses; the IPv6 rules only drop packets. */
  readonly hasIpv6: boolean;
}

const said = { changed: z.object({ changed: z.boolean() }) };
const neighbour = z.object({
  gateway: z.string(),
  resolvers: z.array(z.string()),
  address: z.string(),
  port: z.number(),
});
const tried = z.object({ reached: z.array(z.boolean()), ipv6: z.boolean() });

type Target = readonly [host: string, port: number];

/**
 * Rules that restrict agents to the public internet and the AI listener. A helper container in the host's
 * network sets them, so this process needs no privileges, and the engine may run in a virtual machine.
 */
export class AgentEgress {
  readonly #client: DockerClient;
  readonly #helpers: HelperContainers;
  readonly #options: EgressOptions;

  constructor(client: DockerClient, options: EgressOptions) {
    this.#client = client;
    this.#helpers = new HelperContainers(client);
    this.#options = options;
  }

  /**
   * Replaces the rules atomically. If they had to be changed, or `prove` is set, probes them from a network
   * like an agent's and returns the result.
   * @throws HelperImageError, HelperFailedError, DockerUnavailableError, DockerRefusedError
   */
  async hold(prove: boolean): Promise<EgressProbe | undefined> {
    await this.#helpers.removeLeftovers();
    const { aiPort, allow, image: name } = this.#options;
    const image = await requireHelperImage(this.#client, name);
    const asNeighbour = { image, script: NEIGHBOUR, network: 'bridge', answer: neighbour };
    return this.#helpers.run(asNeighbour, async ({ gateway, resolvers, address, port }) => {
      const ai = { address: gateway, port: aiPort };
      const rules = egressRules(this.#client.installation, { ai, resolvers, allow });
      const changed = await setRules(this.#helpers, image, rules);
      if (!changed && !prove) return undefined;
      return this.#probe(image, [gateway, aiPort], [address, port]);
    });
  }

  release(): Promise<boolean> {
    return releaseEgress(this.#client, this.#options.image);
  }

  /** Probes from a network like an agent's: targets that answer there also answer agents. */
  async #probe(image: string, ai: Target, other: Target): Promise<EgressProbe> {
    const own = createServer((socket) => socket.on('error', () => undefined).destroy());
    const port = await listen(own);
    const network = await this.#makeNetwork();
    try {
      const hosts = new Set([...this.#addressesHere(), network.gateway, ai[0]]);
      const forbidden: Target[] = [...[...hosts].map((host) => [host, port] as const), other];
      const task = { targets: [...forbidden, ai], timeoutMs: TRY_MS };
      const { reached, ipv6 } = await this.#helpers.run(
        { image, script: TRY, task, network: network.name, answer: tried },
        (answer) => Promise.resolve(answer),
      );
      return {
        reached: forbidden.filter((_, at) => reached[at]).map(([host]) => host),
        reachesAi: reached.at(-1) === true,
        hasIpv6: ipv6,
      };
    } finally {
      own.close();
      await this.#client.callUnless([404], (docker, bound) =>
        docker.getNetwork(network.name).remove(bound),
      );
    }
  }

  async #makeNetwork(): Promise<{ readonly name: string; readonly gateway: string }> {
    const name = `agent-platform-egress-${randomUUID()}`;
    const [first, second] = this.#options.subnetPool.split('.');
    for (let place = 1; ; place++) {
      const start = 65_536 - place * 16;
      const base = `${first}.${second}.${start >> 8}`;
      const subnet = `${base}.${start & 255}/28`;
      const gateway = `${base}.${(start & 255) + 1}`;
      const bridge = bridgeName(this.#client.installation, subnet);
      try {
        await this.#client.call((docker, bound) =>
          docker.createNetwork({
            Name: name,
            Driver: 'bridge',
            EnableIPv6: false,
            Options: { [BRIDGE_NAME]: bridge },
            IPAM: { Driver: 'default', Config: [{ Subnet: subnet, Gateway: gateway }] },
            Labels: this.#helpers.labels,
            ...bound,
          }),
        );
        return { name, gateway };
      } catch (error) {
        // The subnet is in use, by an agent or otherwise.
        if (!(error instanceof DockerRefusedError) || place === MAX_SUBNETS) throw error;
      }
    }
  }

  /** Returns this machine's addresses, without those of agents' bridges, which include the probe's. */
  #addressesHere(): string[] {
    const prefix = bridgePrefix(this.#client.installation);
    return Object.entries(networkInterfaces())
      .filter(([name]) => !name.startsWith(prefix))
      .flatMap(([, addresses]) => addresses ?? [])
      .filter(({ family, internal }) => family === 'IPv4' && !internal)
      .map(({ address }) => address)
      .slice(0, MAX_ADDRESSES);
  }
}

/** Removes an installation's rules, and returns true, unless a network of an agent still exists. */
export async function releaseEgress(client: DockerClient, image: string): Promise<boolean> {
  const helpers = new HelperContainers(client);
  await helpers.removeLeftovers();
  const label = [`${LABEL.installation}=${client.installation}`];
  const filters = JSON.stringify({ label });
  const networks = await client.call((docker, bound) => docker.listNetworks({ filters, ...bound }));
  if (networks.length > 0) return false;
  const id = await requireHelperImage(client, image);
  await setRules(helpers, id, { chain: egressChain(client.installation) });
  return true;
}

/**
 * Sets the chain's rules, or removes the chain if `from` and rules are missing; true if anything has changed.
 */
async function setRules(
  helpers: HelperContainers,
  image: string,
  rules: Pick<EgressRules, 'chain'> & Partial<EgressRules>,
): Promise<boolean> {
  const program = { image, script: SET_RULES, task: rules, network: 'host', answer: said.changed };
  const { changed } = await helpers.run({ ...program, administersNetwork: true }, (answer) =>
    Promise.resolve(answer),
  );
  return changed;
}

/** Listens on all addresses, so that only the rules block connections. Returns the port. */
async function listen(server: Server): Promise<number> {
  server.listen(0, '0.0.0.0');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}
