import { setTimeout as sleep } from 'node:timers/promises';
import type { ServerProcess } from './processes/process.js';
import { describeFailure } from './failure.js';
import { say } from './report.js';
import { stopping } from './processes/stopping.js';

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 30_000;
const STEADY_MS = 60_000;

/** Something that was started, and the process whose end means that it is gone. */
export interface Running {
  readonly process: ServerProcess;
  stop(): Promise<void>;
}

/**
 * Starts something, and starts it again whenever it dies, with growing pauses.
 *
 * @returns what the first start gave, whose `stop` ends the one that runs by then.
 */
export async function keepRunning<T extends Running>(
  name: string,
  start: () => Promise<T>,
): Promise<T> {
  const first = await start();
  return { ...first, stop: watchOver(name, start, first) };
}

/**
 * The same for what needs something that may come later: when the first start fails this says why,
 * and goes on trying.
 */
export async function keepTrying(
  name: string,
  start: () => Promise<Running>,
): Promise<Pick<Running, 'stop'>> {
  let first: Running | undefined;
  try {
    first = await start();
  } catch (error) {
    stopping.signal.throwIfAborted();
    say(`${name} does not start yet, and is tried again: ${describeFailure(error)}`);
  }
  return { stop: watchOver(name, start, first) };
}

/** Returns what ends it, whichever run of it that is by then. */
function watchOver(
  name: string,
  start: () => Promise<Running>,
  first: Running | undefined,
): () => Promise<void> {
  let current = first;
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
        say(`${name} ${how}; starting it again (its log: ${current.process.logFile})`);
        current = undefined;
      }
      let told = '';
      while (!current) {
        await sleep(delayMs);
        delayMs = Math.min(delayMs * 2, LONGEST_DELAY_MS);
        if (isOver()) return;
        try {
          current = await start();
          say(`${name} is back.`);
        } catch (error) {
          if (isOver()) return;
          const reason = describeFailure(error);
          if (reason !== told) say(`${name} did not come back: ${reason}`);
          told = reason;
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
