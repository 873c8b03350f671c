import type { Database } from '../../platform/database/database.js';
import { setBounded } from '../../lib/bounded-map.js';
import { NotFoundError } from '../../lib/errors.js';
import type { AgentRef } from '../../types/agent-ref.js';
import type { PortRange } from './agent-subnet.js';
import { AgentGoneError, presentAgent } from './agents.js';

const MAX_KNOWN = 10_000;

export class NoPortFreeError extends Error {
  override readonly name = 'NoPortFreeError';

  constructor(readonly host: string) {
    super(`No port is free on host ${host}: widen AGENT_PORT_RANGE`);
  }
}

/** The loopback ports of the agents' gateways. Every method is idempotent. */
export class AgentPorts {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /**
   * Reserves the lowest free port above `above` outside `taken`, or returns a present port of that kind. The range
   * comes from the host's row, because any host's worker may run this.
   * @throws NoPortFreeError, AgentGoneError; NotFoundError when the host has never registered
   */
  async reserve(agent: AgentRef, above: number, taken: readonly PortRange[] = []): Promise<number> {
    // Ports of other tenants count too, so the query spans all tenants.
    return this.#database.asPlatform().transaction(async (db) => {
      await db.lock(`agent-ports:${agent.host}`);
      const row = await presentAgent(db, agent.agentId);
      if (!row) throw new AgentGoneError(agent.agentId);
      const { port } = row;
      const isTaken = taken.some(
        ({ first, last }) => port !== null && port >= first && port <= last,
      );
      if (port !== null && port > above && !isTaken) return port;
      const host = await db.Host.findByPk(agent.host);
      if (!host)
        throw new NotFoundError(`No worker of host ${agent.host} has registered yet: start one`);
      const [free] = await db.query<{ port: number }>(
        `SELECT port FROM generate_series($first::int, $last::int) AS candidate(port)
         WHERE port > $above AND NOT port <@ $taken::int4multirange AND NOT EXISTS
           (SELECT FROM agents WHERE agents.host = $host AND agents.port = candidate.port)
         ORDER BY port LIMIT 1`,
        {
          first: host.firstPort,
          last: host.lastPort,
          above,
          host: agent.host,
          taken: `{${taken.map(({ first, last }) => `[${first},${last}]`).join()}}`,
        },
      );
      if (!free) throw new NoPortFreeError(agent.host);
      await db.Agent.update({ port: free.port }, { where: { id: row.id } });
      return free.port;
    });
  }

  /**
   * Frees the port of an agent that failed to start, unless the watchdog's memory is newer than `version`: a
   * late write must not free the port that the next operation has reserved.
   */
  async release({ agentId, userId }: AgentRef, version: number): Promise<void> {
    await this.#database.asUser(userId).query(
      `UPDATE agents SET port = NULL, updated_at = now()
        WHERE id = $agentId AND deleted_at IS NULL
          AND COALESCE((watchdog ->> 'version')::int, 0) <= $version`,
      { agentId, version },
    );
  }

  /** Returns the port of the agent's gateway. @throws AgentGoneError */
  async of({ agentId, userId }: AgentRef): Promise<number> {
    const row = await this.#database.asUser(userId).transaction((db) => presentAgent(db, agentId));
    const port = row?.port ?? null;
    if (port === null) throw new AgentGoneError(agentId);
    return port;
  }
}

/** A cache of gateway ports that saves a database query per check. */
export class PortCache {
  readonly #known = new Map<string, { readonly watch: string; readonly port: number }>();

  readonly #ports: Pick<AgentPorts, 'of'>;

  constructor(ports: Pick<AgentPorts, 'of'>) {
    this.#ports = ports;
  }

  /** Returns the port, queried once per watch: a change ends the watch. @throws AgentGoneError */
  async of(agent: AgentRef, watch: string): Promise<number> {
    const known = this.#known.get(agent.agentId);
    if (known?.watch === watch) return known.port;
    const port = await this.#ports.of(agent);
    setBounded(this.#known, agent.agentId, { watch, port }, MAX_KNOWN);
    return port;
  }
}
