import { setTimeout as delay } from 'node:timers/promises';
import type { Database } from '../../platform/database/database.js';

/** How long sightings are gathered before they are written down, and how many go together. */
const GATHER_MS = 1_000;
const MAX_TOGETHER = 500;

/** Agents whose sightings wait: as many as a host may have. */
const MAX_WAITING = 10_000;

/** One that is being changed elsewhere is left out: who changes it knows better. */
const WRITE = `
  UPDATE agents SET observed_at = GREATEST(agents.observed_at, seen.at), updated_at = now()
  FROM (
    SELECT agents.id, sighting.at
    FROM unnest($ids::text[], $times::timestamptz[]) AS sighting(id, at)
    JOIN agents ON agents.id = sighting.id
    WHERE agents.deleted_at IS NULL
    FOR NO KEY UPDATE OF agents SKIP LOCKED
  ) AS seen
  WHERE agents.id = seen.id`;

/**
 * When agents were last seen to be as they were before: a write for each check of each agent would
 * cost more than the check. Nobody waits for it, and a sighting that cannot be written is dropped: the
 * next one says more, and reconciliation tells of agents that have not been seen for long.
 */
export class LastSeen {
  /** ISO 8601, by agent. */
  readonly #times = new Map<string, string>();
  #writing: Promise<void> | undefined;

  readonly #database: Pick<Database, 'asPlatform'>;

  constructor(database: Pick<Database, 'asPlatform'>) {
    this.#database = database;
  }

  /**
   * Has it written down, about a second later.
   *
   * @param at ISO 8601
   */
  record(agentId: string, at: string): void {
    if (this.#times.size >= MAX_WAITING && !this.#times.has(agentId)) return;
    this.#times.set(agentId, at);
    this.#writing ??= this.#writeAll();
  }

  /** Resolves when nothing waits to be written any more. */
  async settled(): Promise<void> {
    await this.#writing;
  }

  /** One write at a time: however slow the database is, it is not asked for more. */
  async #writeAll(): Promise<void> {
    while (this.#times.size > 0) {
      if (this.#times.size < MAX_TOGETHER) await delay(GATHER_MS);
      const together = [...this.#times].slice(0, MAX_TOGETHER);
      for (const [id] of together) this.#times.delete(id);
      const values = { ids: together.map(([id]) => id), times: together.map(([, at]) => at) };
      await this.#database
        .asPlatform()
        .query(WRITE, values)
        .catch(() => undefined); // dropped
    }
    this.#writing = undefined;
  }
}
