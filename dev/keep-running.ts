import { setTimeout as sleep } from 'node:timers/promises';
import type { ServerProcess } from './processes/process.js';
import { describeFailure } from './failure.js';
import { say } from './report.js';
import { stopping } from './processes/stopping.js';

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 30_000;
const STEADY_MS = 60_000;

/** A started service, and the process whose end means that the service has ended. */
export interface Running {
  readonly process: ServerProcess;
  stop(): Promise<void>;
}

/**
 * Starts a service, and restarts it whenever it ends, with growing pauses.
 *
 * @returns the result of the first start; its `stop` ends the run that is then in progress.
 */
export async function keepRunning<T extends Running>(
  name: string,
  start: () => Promise<T>,
): Promise<T> {
  const first = await start();
  return { ...first, stop: watchOver(name, start, first) };
}

/** Returns the function that ends the current run. */
function watchOver(
  name: string,
  start: () => Promise<Running>,
  first: Running,
): () => Promise<void> {
  let current: Running | undefined = first;
  let ending = false;
  const isOver = () => ending || stopping.signal.aborted;

  const watch = async () => {
    let delayMs = FIRST_DELAY_MS;
    for (;;) {
      if (current) {
        const since = performance.now();
        const how = await current.process.ended;
        if (isOver()) return;
        if (performance.now() - since > STEADY_MS) delayMs = FIRST_DELAY_MS;
        say(`${name} ${how}; restarting it (its log: ${current.process.logFile})`);
        current = undefined;
      }
      let reported = '';
      while (!current) {
        await sleep(delayMs);
        delayMs = Math.min(delayMs * 2, LONGEST_DELAY_MS);
        if (isOver()) return;
        try {
          current = await start();
          say(`${name} runs again.`);
        } catch (error) {
          if (isOver()) return;
          const reason = describeFailure(error);
          if (reason !== reported) say(`${name} could not be restarted: ${reason}`);
          reported = reason;
        }
      }
    }
  };
  void watch();

  return async () => {
    ending = true;
    await current?.stop();
  };
}
