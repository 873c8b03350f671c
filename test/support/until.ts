import { setTimeout as delay } from 'node:timers/promises';

/** What hangs: on a machine that has other work, seconds become tens of them. */
const HANGS_MS = 150_000;

/**
 * Asks again until the answer is there: every `everyMs`, which is longer for what has a limit of
 * requests. @throws when it does not come.
 */
export async function until<T>(
  ask: () => T | undefined | false | Promise<T | undefined | false>,
  timeoutMs = HANGS_MS,
  everyMs = 25,
): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    if (Date.now() > deadline) throw new Error(`Not so after ${timeoutMs} ms: ${ask.toString()}`);
    await delay(everyMs);
  }
}
