import type { Logger } from 'pino';
import type { TableChanges } from '../database/row-changes.js';
import { jittered } from '../../lib/jitter.js';
import { pause } from '../../lib/pause.js';

export interface Periodic {
  /** Milliseconds from the end of one run to the next, or up to a tenth less. */
  readonly everyMs: number;
  /** Log message for a failure, written once a minute at most. A failure does not stop the runs. */
  readonly failure: string;
  readonly log: Logger;
  /** Changes that start the next run at once. */
  readonly changes?: TableChanges;
  readonly work: () => void | Promise<void>;
}

/** Milliseconds between two log lines of a continuing failure. */
const LOGGED_EVERY_MS = 60_000;

/** Runs work immediately and then repeatedly, without overlap, until the signal aborts. */
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
