import type { AgentRef } from './agent-ref.js';
import type { AgentSpecs } from './agent-specs.js';

/** As many as a host may have agents. */
const MAX_KNOWN = 10_000;

/** Ports of agents' gateways, so that the database is not asked for them with every check. */
export class KnownPorts {
  readonly #known = new Map<string, { readonly watch: string; readonly port: number }>();

  constructor(private readonly specs: Pick<AgentSpecs, 'portOf'>) {}

  /**
   * Asks the database with the first check of each watch: whatever gives an agent another port ends
   * its watch.
   *
   * @param watch tells one watch of the agent from the next.
   * @throws AgentGoneError
   */
  async of(agent: AgentRef, watch: string): Promise<number> {
    const known = this.#known.get(agent.agentId);
    if (known?.watch === watch) return known.port;
    const port = await this.specs.portOf(agent);
    this.#known.delete(agent.agentId);
    const [oldest] = this.#known.keys();
    if (this.#known.size >= MAX_KNOWN && oldest !== undefined) this.#known.delete(oldest);
    this.#known.set(agent.agentId, { watch, port });
    return port;
  }
}
