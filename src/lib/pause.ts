import { setTimeout as delay } from 'node:timers/promises';

/** Waits; resolves at once, without an error, when the signal aborts. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => undefined);
}
