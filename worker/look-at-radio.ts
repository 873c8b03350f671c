import { pause } from '../src/lib/pause.js';
import { IcecastAwayError } from '../src/radio/icecast.js';
import { lookAtRadio, type LookParts } from '../src/radio/look.js';

const INTERVAL_MS = 10_000;

/** Looks at the radio every ten seconds, until the signal aborts. */
export async function lookAtRadioPeriodically(
  parts: LookParts,
  signal: AbortSignal,
): Promise<void> {
  let isAway = false;
  while (!signal.aborted) {
    try {
      await lookAtRadio(parts);
      isAway = false;
    } catch (error) {
      // An Icecast that is away is logged once.
      const wasAway = isAway;
      isAway = error instanceof IcecastAwayError;
      if (!wasAway || !isAway) parts.log.warn({ err: error }, 'the radio could not be examined');
    }
    await pause(INTERVAL_MS, signal);
  }
}
