import { setTimeout as sleep } from 'node:timers/promises';
import type { EngineProcess } from './engines/process.js';
import { describeFailure } from './failure.js';
import { say } from './report.js';
import { stopping } from './stopping.js';

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 30_000;
const STEADY_MS = 60_000;

/** Something that was started, and the process whose end means that it is gone. */
export interface Running {
  readonly process: EngineProcess;
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
  let current: Running = first;
  let ending = false;

  const watch = async () => {
    let delayMs = FIRST_DELAY_MS;
    for (;;) {
      const since = performance.now();
      const how = await current.process.ended;
      if (ending || stopping.signal.aborted) return;
      if (performance.now() - since > STEADY_MS) delayMs = FIRST_DELAY_MS;
      say(`${name} ${how}; starting it again (its log: ${current.process.logFile})`);
      for (;;) {
        await sleep(delayMs);
        delayMs = Math.min(delayMs * 2, LONGEST_DELAY_MS);
        if (ending || stopping.signal.aborted) return;
        try {
          current = await start();
          say(`${name} is back.`);
          break;
        } catch (error) {
          if (ending || stopping.signal.aborted) return;
          say(`${name} did not come back: ${describeFailure(error)}`);
        }
      }
    }
  };
  void watch();

  const stop = () => {
    ending = true;
    return current.stop();
  };
  return { ...first, stop };
}
