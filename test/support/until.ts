import { setTimeout as delay } from 'node:timers/promises';

/** What hangs: on a machine that has other work, seconds become tens of them. */
const HANGS_MS = 150_000;

/** Longest pause between two questions. */
const LONGEST_MS = 250;

/**
 * Asks again until the answer is there. `everyMs` is longer for what has a limit of requests; it grows
 * with the time that has passed, since whoever asks takes the processor from what is waited for.
 *
 * @throws when the answer does not come.
 */
export async function until<T>(
  ask: () => T | undefined | false | Promise<T | undefined | false>,
  timeoutMs = HANGS_MS,
  everyMs = 25,
): Promise<T> {
  const began = Date.now();
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    const passed = Date.now() - began;
    if (passed > timeoutMs) throw new Error(`Not so after ${timeoutMs} ms: ${ask.toString()}`);
    await delay(Math.max(everyMs, Math.min(passed / 8, LONGEST_MS)));
  }
}
