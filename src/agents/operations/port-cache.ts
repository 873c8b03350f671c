import { setBounded } from '../../lib/bounded-map.js';
import type { AgentRef } from '../../types/agent-ref.js';
import type { RuntimeStore } from './runtime-store.js';

const MAX_KNOWN = 10_000;

/** A cache of gateway ports that saves a database query per check. */
export class PortCache {
  readonly #known = new Map<string, { readonly watch: string; readonly port: number }>();

  readonly #specs: Pick<RuntimeStore, 'portOf'>;

  constructor(specs: Pick<RuntimeStore, 'portOf'>) {
    this.#specs = specs;
  }

  /**
   * Returns the agent's port, queried once per watch: a change of the port ends the watch. @throws
   * AgentGoneError
   */
  async of(agent: AgentRef, watch: string): Promise<number> {
    const known = this.#known.get(agent.agentId);
    if (known?.watch === watch) return known.port;
    const port = await this.#specs.portOf(agent);
    setBounded(this.#known, agent.agentId, { watch, port }, MAX_KNOWN);
    return port;
  }
}
