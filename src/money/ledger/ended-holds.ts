import type { Database } from '../../platform/database/database.js';

/** Holds of one transaction, and how many times as many one call releases. */
const BATCH = 100;
const MAX_BATCHES = 50;

/** Releases holds that are past their end. Several at a time take different ones. */
export async function releaseEndedHolds(database: Database): Promise<number> {
  let released = 0;
  for (let batches = 0; batches < MAX_BATCHES; batches += 1) {
    const [row] = await database.call<{ done: number }>(RELEASE, [BATCH]);
    released += row?.done ?? 0;
    if ((row?.done ?? 0) < BATCH) break;
  }
  return released;
}

const RELEASE = { name: 'release_ended_holds', text: 'SELECT release_ended_holds($1) AS done' };
