import { setTimeout as delay } from 'node:timers/promises';
import type { Database } from '../../platform/database/database.js';

/** Milliseconds for which observations are batched, and the maximum size of a batch. */
const GATHER_MS = 1_000;
const MAX_TOGETHER = 500;

/** Maximum agents with a pending observation: as many as a host may have. */
const MAX_WAITING = 10_000;

/** Skips rows locked by another writer, whose data is newer. */
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
 * Times of unchanged observations, in batches: a write per check would cost more than the check. Failed
 * writes are dropped, because the next observation replaces them.
 */
export class LastSeen {
  /** ISO 8601 times, by agent id. */
  readonly #times = new Map<string, string>();
  #writing: Promise<void> | undefined;

  readonly #database: Pick<Database, 'asPlatform'>;

  constructor(database: Pick<Database, 'asPlatform'>) {
    this.#database = database;
  }

  /** Schedules the write of an observation, as ISO 8601, about a second later. */
  record(agentId: string, at: string): void {
    if (this.#times.size >= MAX_WAITING && !this.#times.has(agentId)) return;
    this.#times.set(agentId, at);
    this.#writing ??= this.#writeAll();
  }

  async settled(): Promise<void> {
    await this.#writing;
  }

  /** Writes one batch at a time, so that a slow database gets no extra load. */
  async #writeAll(): Promise<void> {
    while (this.#times.size > 0) {
      if (this.#times.size < MAX_TOGETHER) await delay(GATHER_MS);
      const together = [...this.#times].slice(0, MAX_TOGETHER);
      for (const [id] of together) this.#times.delete(id);
      const values = { ids: together.map(([id]) => id), times: together.map(([, at]) => at) };
      await this.#database
        .asPlatform()
        .query(WRITE, values)
        .catch(() => undefined); // dropped: the next observation replaces it
    }
    this.#writing = undefined;
  }
}
