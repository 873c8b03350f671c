import { pause } from '../src/lib/pause.js';
import { IcecastAwayError } from '../src/radio/icecast.js';
import { observeRadio, type ObservationParts } from '../src/radio/observe.js';

const INTERVAL_MS = 10_000;

/** Observes the radio every ten seconds, until the signal aborts. */
export async function observeRadioPeriodically(
  parts: ObservationParts,
  signal: AbortSignal,
): Promise<void> {
  let isAway = false;
  while (!signal.aborted) {
    try {
      await observeRadio(parts);
      isAway = false;
    } catch (error) {
      // An unreachable Icecast is logged once.
      const wasAway = isAway;
      isAway = error instanceof IcecastAwayError;
      if (!wasAway || !isAway) parts.log.warn({ err: error }, 'the radio could not be observed');
    }
    await pause(INTERVAL_MS, signal);
  }
}
