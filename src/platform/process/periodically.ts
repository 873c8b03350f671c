import type { Logger } from 'pino';
import type { TableChanges } from '../database/row-changes.js';
import { jittered } from '../../lib/jitter.js';
import { pause } from '../../lib/pause.js';

export interface Periodic {
  /** Milliseconds from the end of one time to the next, or up to a tenth less. */
  readonly everyMs: number;
  /** What the log says of a failure, once a minute at most. The next time comes as always. */
  readonly failure: string;
  readonly log: Logger;
  /** As soon as something is heard of it, the next time comes. */
  readonly changes?: TableChanges;
  readonly work: () => void | Promise<void>;
}

/** Milliseconds between two lines of one failure that goes on. */
const LOGGED_EVERY_MS = 60_000;

/** Does something now, and again and again, one time after the other, until the signal aborts. */
export async function periodically(
  { everyMs, failure, log, changes, work }: Periodic,
  signal: AbortSignal,
): Promise<void> {
  let loggedAt = -Infinity;
  while (!signal.aborted) {
    const count = changes?.count ?? 0;
    try {
      await work();
      loggedAt = -Infinity;
    } catch (error) {
      if (performance.now() - loggedAt >= LOGGED_EVERY_MS) {
        loggedAt = performance.now();
        log.warn({ err: error }, failure);
      }
    }
    await (changes?.after(count, jittered(everyMs), signal) ?? pause(jittered(everyMs), signal));
  }
}
