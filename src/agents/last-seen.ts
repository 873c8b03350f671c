import { setTimeout as delay } from 'node:timers/promises';
import type { Database } from '../database/database.js';

/** How long sightings are gathered before they are written down, and how many go together. */
const GATHER_MS = 1_000;
const MAX_TOGETHER = 500;

/** One that is being changed elsewhere is left out: who changes it knows better. */
const WRITE = `
  UPDATE agents SET observed_at = seen.at, updated_at = now()
  FROM (
    SELECT agents.id, sighting.at
    FROM unnest($ids::text[], $times::timestamptz[]) AS sighting(id, at)
    JOIN agents ON agents.id = sighting.id
    WHERE agents.deleted_at IS NULL
    FOR NO KEY UPDATE OF agents SKIP LOCKED
  ) AS seen
  WHERE agents.id = seen.id`;

/** ISO 8601, by agent. */
type Times = Map<string, string>;

/**
 * When agents were last seen to be as they were before: a write for each check of each agent would
 * cost more than the check.
 */
export class LastSeen {
  #gathered: { readonly times: Times; readonly written: Promise<void> } | undefined;

  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /**
   * Resolves when it is written down, about a second later.
   *
   * @param at ISO 8601
   */
  record(agentId: string, at: string): Promise<void> {
    const gathered = (this.#gathered ??= this.#gather());
    gathered.times.set(agentId, at);
    if (gathered.times.size >= MAX_TOGETHER) this.#gathered = undefined;
    return gathered.written;
  }

  #gather() {
    const times: Times = new Map();
    const written = delay(GATHER_MS).then(() => {
      if (this.#gathered?.times === times) this.#gathered = undefined;
      return this.#write(times);
    });
    return { times, written };
  }

  async #write(times: Times): Promise<void> {
    const values = { ids: [...times.keys()], times: [...times.values()] };
    await this.#database.asPlatform().query(WRITE, values);
  }
}
