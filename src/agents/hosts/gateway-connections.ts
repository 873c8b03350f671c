import http from 'node:http';
import type { Duplex } from 'node:stream';
import type { AgentRef } from '../../types/agent-ref.js';
import type { AgentPlace } from '../address/agents-by-subdomain.js';

/** Unused connections kept open to one gateway, and milliseconds for which one is kept. */
const KEPT = 64;
const KEPT_MS = 4_000;

const KEEPING = { keepAlive: true, maxFreeSockets: KEPT, timeout: KEPT_MS } as const;

/** How `http.request` reaches an agent's gateway. */
export type GatewayTarget = Pick<http.RequestOptions, 'agent' | 'host' | 'port'>;

/** Opens a connection to the gateway of an agent on another host. */
export type OpenFarGateway = (agent: AgentRef) => Promise<Duplex>;

/** Connections to the gateways of agents, which are reused. */
export class GatewayConnections {
  readonly #here: string | undefined;
  readonly #local = new http.Agent(KEEPING);
  readonly #far: FarGateways;

  /** @param here name of the Docker host beside this process, if there is one. */
  constructor(here: string | undefined, openFar: OpenFarGateway) {
    this.#here = here;
    this.#far = new FarGateways(openFar);
  }

  /** Returns the way to an agent's gateway; undefined unless the agent runs. */
  to(place: AgentPlace): GatewayTarget | undefined {
    const { host, port } = place;
    if (port === null) return undefined;
    if (host === this.#here) return { host: '127.0.0.1', port, agent: this.#local };
    const far: FarTarget = { host: 'gateway', port, agent: this.#far, place };
    return far;
  }

  close(): void {
    this.#local.destroy();
    this.#far.destroy();
  }
}

interface FarTarget extends GatewayTarget {
  readonly place: AgentRef;
}

/** A pool of connections through hosts' workers, by agent. */
class FarGateways extends http.Agent {
  readonly #open: OpenFarGateway;

  constructor(open: OpenFarGateway) {
    super(KEEPING);
    this.#open = open;
  }

  override createConnection(
    options: http.ClientRequestArgs,
    callback?: (error: Error | null, stream: Duplex) => void,
  ): undefined {
    // Node hands over the options of the request, which `to` made.
    const { place } = options as http.ClientRequestArgs & FarTarget;
    this.#open(place).then(
      (socket) => callback?.(null, socket),
      // Node reads the error first, and no stream beside it.
      (error: Error) => callback?.(error, undefined as never),
    );
  }

  override getName(options?: http.ClientRequestArgs): string {
    return (options as FarTarget | undefined)?.place.agentId ?? '';
  }
}
