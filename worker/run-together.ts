import { setMaxListeners } from 'node:events';
import type { Worker } from '@temporalio/worker';
import type { Polling } from './polling.js';

export interface Part {
  readonly name: string;
  run(signal: AbortSignal): Promise<void>;
}

/** A part failed, or ended before the signal aborted. */
export class PartFailedError extends Error {
  override readonly name = 'PartFailedError';

  constructor(part: string, cause: unknown) {
    const reason = cause instanceof Error ? cause.message : 'it ended by itself';
    super(`The worker ends because its part "${part}" has failed: ${reason}`, { cause });
  }
}

/**
 * Runs all parts until the signal aborts or one ends: a process doing half its work would seem healthy.
 * @throws PartFailedError of the first part that failed, once all have ended.
 */
export async function runTogether(parts: readonly Part[], stop: AbortSignal): Promise<void> {
  const ending = new AbortController();
  const signal = AbortSignal.any([stop, ending.signal]);
  setMaxListeners(0, signal); // every part adds listeners, and so do its waits
  const failures: PartFailedError[] = [];
  const run = async (part: Part) => {
    try {
      await part.run(signal);
      if (!signal.aborted) failures.push(new PartFailedError(part.name, undefined));
    } catch (error) {
      // The error of a nested part is more specific.
      const isReported = error instanceof PartFailedError;
      failures.push(isReported ? error : new PartFailedError(part.name, error));
    } finally {
      ending.abort();
    }
  };
  await Promise.all(parts.map(run));
  if (failures[0]) throw failures[0];
}

/** Runs Temporal's workers, created only now: a worker that never ran keeps its connection open. */
export async function runWorkers(
  make: () => Promise<readonly Worker[]>,
  signal: AbortSignal,
  polling?: Polling,
): Promise<void> {
  if (signal.aborted) return;
  const workers = await make();
  const parts = workers.map((worker) => ({
    name: worker.options.taskQueue,
    run(stop: AbortSignal) {
      const running = runWorker(worker, stop);
      return polling?.during(worker, running) ?? running;
    },
  }));
  await runTogether(parts, signal);
}

async function runWorker(worker: Worker, signal: AbortSignal): Promise<void> {
  const shutdown = () => {
    if (worker.getState() === 'RUNNING') worker.shutdown();
  };
  const running = worker.run();
  signal.addEventListener('abort', shutdown, { once: true });
  if (signal.aborted) shutdown();
  try {
    await running;
  } finally {
    signal.removeEventListener('abort', shutdown);
  }
}

/** Resolves when the signal aborts; for a part driven by its own timers. */
export function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
