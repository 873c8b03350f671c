import type { Worker } from '@temporalio/worker';
import { CheckFailedError } from '../src/platform/operators/readiness.js';

/** The workers of this process that poll Temporal. */
export class Polling {
  readonly #workers = new Set<Pick<Worker, 'getState' | 'options'>>();

  /** Counts a worker until it has ended. */
  async during(
    worker: Pick<Worker, 'getState' | 'options'>,
    running: Promise<void>,
  ): Promise<void> {
    this.#workers.add(worker);
    try {
      await running;
    } finally {
      this.#workers.delete(worker);
    }
  }

  /** Requires that all workers poll, and that there is one. @throws CheckFailedError */
  require(): void {
    if (this.#workers.size === 0) throw new CheckFailedError('No task queue is polled yet');
    for (const worker of this.#workers) {
      if (worker.getState() === 'RUNNING') continue;
      throw new CheckFailedError(
        `The task queue ${worker.options.taskQueue} is not polled any more`,
      );
    }
  }
}
