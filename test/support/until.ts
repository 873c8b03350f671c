import { setTimeout as delay } from 'node:timers/promises';

/** Milliseconds after which a wait hangs; a wait that the product makes longer names its own limit. */
export const HANGS_MS = 30_000;

/** Longest pause between two attempts. */
const LONGEST_MS = 250;

/**
 * Polls until `ask` returns a value other than undefined or false. Set `everyMs` higher for a target with
 * a rate limit. The pause grows with the time passed, because polling takes CPU time from the work
 * awaited.
 *
 * @throws after `timeoutMs`.
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
    if (passed > timeoutMs)
      throw new Error(`Condition not met after ${timeoutMs} ms: ${ask.toString()}`);
    await delay(Math.max(everyMs, Math.min(passed / 8, LONGEST_MS)));
  }
}
