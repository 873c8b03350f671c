import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { Agent, type Dispatcher } from 'undici';
import { setBounded } from '../../lib/bounded-map.js';
import type { AgentRef } from '../../types/agent-ref.js';
import type { AgentPlace } from '../address/agents-by-subdomain.js';

/** Milliseconds for which an unused connection is kept. */
const KEPT_MS = 4_000;

/** Connections without time limits for an answer: whoever sends a request bounds its silence. */
const KEEPING = {
  keepAliveTimeout: KEPT_MS,
  keepAliveMaxTimeout: KEPT_MS,
  headersTimeout: 0,
  bodyTimeout: 0,
} as const;

/** Maximum number of agents on other hosts whose places are remembered; those used last. */
const MAX_PLACES = 10_000;

/** The way to an agent's gateway. */
export interface GatewayTarget {
  readonly dispatcher: Dispatcher;
  readonly origin: string;
}

/** Opens a connection to the gateway of an agent on another host. */
export type OpenFarGateway = (agent: AgentRef) => Promise<Duplex>;

/** Connections to the gateways of agents, which are reused. */
export class GatewayConnections {
  readonly #here: string | undefined;
  readonly #openFar: OpenFarGateway;
  readonly #local = new Agent(KEEPING);
  readonly #far = new Agent({
    ...KEEPING,
    connect: ({ hostname }, callback) => {
      this.#connectFar(hostname).then(
        (socket) => callback(null, socket),
        (error: Error) => callback(error, null),
      );
    },
  });
  /** Agents on other hosts, by the host names of their gateways' origins. */
  readonly #places = new Map<string, AgentRef>();

  /** @param here name of the Docker host on this machine, if there is one. */
  constructor(here: string | undefined, openFar: OpenFarGateway) {
    this.#here = here;
    this.#openFar = openFar;
  }

  /** Returns the target for connections to an agent's gateway; undefined unless the agent runs. */
  to(place: AgentPlace): GatewayTarget | undefined {
    const { agentId, host, port } = place;
    if (port === null) return undefined;
    if (host === this.#here) {
      return { dispatcher: this.#local, origin: `http://127.0.0.1:${port}` };
    }
    const name = `${agentId}.agent`;
    setBounded(this.#places, name, place, MAX_PLACES);
    return { dispatcher: this.#far, origin: `http://${name}` };
  }

  async close(): Promise<void> {
    await Promise.all([this.#local.destroy(), this.#far.destroy()]);
  }

  async #connectFar(hostname: string): Promise<Socket> {
    const place = this.#places.get(hostname);
    if (!place) throw new TypeError(`No agent is known by ${hostname}`);
    const socket = await this.#openFar(place);
    if (socket instanceof Socket) return socket;
    throw new TypeError('The connection to a host is no socket');
  }
}
