import type { Database } from '../../platform/database/database.js';

/** Holds released in one transaction, and maximum number of transactions in one call. */
const BATCH = 100;
const MAX_BATCHES = 50;

/** Releases expired holds. Concurrent calls release different holds. */
export async function releaseExpiredHolds(database: Database): Promise<number> {
  let released = 0;
  for (let batches = 0; batches < MAX_BATCHES; batches += 1) {
    const [row] = await database.call<{ done: number }>(RELEASE, [BATCH]);
    released += row?.done ?? 0;
    if ((row?.done ?? 0) < BATCH) break;
  }
  return released;
}

const RELEASE = { name: 'release_ended_holds', text: 'SELECT release_ended_holds($1) AS done' };
