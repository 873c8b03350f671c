import { setTimeout as sleep } from 'node:timers/promises';

/** Calls `ask` until it returns a value; returns undefined when the time is over. */
export async function poll<T>(
  ask: () => Promise<T | undefined>,
  { timeoutMs, everyMs = 50 }: { timeoutMs: number; everyMs?: number },
): Promise<T | undefined> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    if (performance.now() >= deadline) return undefined;
    await sleep(everyMs);
  }
}
