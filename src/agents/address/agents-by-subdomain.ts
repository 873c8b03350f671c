import { setBounded } from '../../lib/bounded-map.js';
import type { Database } from '../../platform/database/database.js';

/** Milliseconds for which a result is cached, less than the time until a port is reused for another agent. */
const CACHED_MS = 500;
const MAX_CACHED = 10_000;

/** The place of an agent's gateway; the port is null unless the agent runs. */
export interface AgentPlace {
  readonly agentId: string;
  readonly userId: string;
  readonly host: string;
  readonly port: number | null;
}

interface Cached {
  readonly place: Promise<AgentPlace | undefined>;
  readonly until: number;
}

/** A lookup of agents by the first label of their host names, with a short cache. */
export class AgentsBySubdomain {
  readonly #database: Pick<Database, 'asPlatform'>;
  readonly #cached = new Map<string, Cached>();

  constructor(database: Pick<Database, 'asPlatform'>) {
    this.#database = database;
  }

  /** Returns an agent's place; undefined if no agent has this subdomain. */
  find(subdomain: string): Promise<AgentPlace | undefined> {
    const known = this.#cached.get(subdomain);
    if (known !== undefined && performance.now() < known.until) return known.place;
    const place = this.#query(subdomain);
    setBounded(
      this.#cached,
      subdomain,
      { place, until: performance.now() + CACHED_MS },
      MAX_CACHED,
    );
    place.catch(() => this.#cached.delete(subdomain));
    return place;
  }

  async #query(subdomain: string): Promise<AgentPlace | undefined> {
    // Anybody may request an agent's address, so the query spans all tenants.
    const [found] = await this.#database.asPlatform().query<AgentPlace>(
      `SELECT id AS "agentId", user_id AS "userId", host,
              CASE WHEN status = 'active' AND desired = 'running' THEN port END AS port
         FROM agents
        WHERE subdomain = $subdomain AND deleted_at IS NULL AND desired <> 'deleted'`,
      { subdomain },
    );
    return found;
  }
}
