import { setTimeout as delay } from 'node:timers/promises';
import { Context } from '@temporalio/activity';
import { RETAINED, type Retained } from '../src/retention/retained.js';
import type { Retention } from '../src/retention/retention.js';

/** Milliseconds after which no further batch is begun: the rest waits for the next pass. */
const ENOUGH_MS = 5 * 60_000;

/** What removes what is not kept any longer. Asked for again, it goes on. */
export function createRetentionActivities(retention: Retention) {
  return {
    /** What is kept for a time only, in the order in which it is removed. */
    retainedKinds: (): Promise<readonly Retained[]> => Promise.resolve(RETAINED),

    /** @returns how many rows were removed. */
    async removeOldRows(what: Retained): Promise<number> {
      const { cancellationSignal: signal, heartbeat } = Context.current();
      const began = Date.now();
      let done = 0;
      for (;;) {
        const batchBegan = Date.now();
        const removed = await retention.removeSome(what);
        done += removed;
        if (removed === 0 || Date.now() - began > ENOUGH_MS) return done;
        heartbeat(done);
        // As long again as the batch took: at least half of the database's time is for others.
        await delay(Date.now() - batchBegan, undefined, { signal });
      }
    },
  };
}

export type RetentionActivities = ReturnType<typeof createRetentionActivities>;
