import { setTimeout as delay } from 'node:timers/promises';
import { Context } from '@temporalio/activity';
import { RETAINED, type RetainedKind } from '../src/retention/retained.js';
import type { Retention } from '../src/retention/retention.js';

/** Milliseconds after which no further batch is started: the remaining rows wait for the next pass. */
const ENOUGH_MS = 5 * 60_000;

/** Creates the activities that delete expired rows. A repeated call continues. */
export function createRetentionActivities(retention: Retention) {
  return {
    /** In the order of their deletion. */
    retainedKinds: (): Promise<readonly RetainedKind[]> => Promise.resolve(RETAINED),

    /** Deletes expired rows of one kind in batches, and returns the number of deleted rows. */
    async removeOldRows(what: RetainedKind): Promise<number> {
      const { cancellationSignal: signal, heartbeat } = Context.current();
      const began = Date.now();
      let done = 0;
      for (;;) {
        const batchBegan = Date.now();
        const removed = await retention.removeSome(what);
        done += removed;
        if (removed === 0 || Date.now() - began > ENOUGH_MS) return done;
        heartbeat(done);
        // Pauses as long as the batch took: at least half of the database's time is left for other work.
        await delay(Date.now() - batchBegan, undefined, { signal });
      }
    },
  };
}

export type RetentionActivities = ReturnType<typeof createRetentionActivities>;
