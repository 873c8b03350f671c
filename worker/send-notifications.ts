import { jittered } from '../src/lib/jitter.js';
import { sendDue, type OutboxParts } from '../src/notifications/outbox.js';
import { pause } from '../src/lib/pause.js';

/** Milliseconds between two polls of the outbox, and after a failed one. */
const INTERVAL_MS = 1_000;
const FAILED_INTERVAL_MS = 10_000;

export async function sendNotifications(parts: OutboxParts, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    let intervalMs = INTERVAL_MS;
    try {
      if ((await sendDue(parts)) > 0) continue;
    } catch (error) {
      intervalMs = FAILED_INTERVAL_MS;
      parts.log.warn({ err: error }, 'the outbox could not be read');
    }
    await pause(jittered(intervalMs), signal);
  }
}
