import { setBounded } from '../../lib/bounded-map.js';
import type { AgentRef } from '../../types/agent-ref.js';
import type { RuntimeStore } from './runtime-store.js';

/** As many as a host may have agents. */
const MAX_KNOWN = 10_000;

/** Ports of agents' gateways, so that the database is not asked for them with every check. */
export class PortCache {
  readonly #known = new Map<string, { readonly watch: string; readonly port: number }>();

  readonly #specs: Pick<RuntimeStore, 'portOf'>;

  constructor(specs: Pick<RuntimeStore, 'portOf'>) {
    this.#specs = specs;
  }

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
    const port = await this.#specs.portOf(agent);
    setBounded(this.#known, agent.agentId, { watch, port }, MAX_KNOWN);
    return port;
  }
}
