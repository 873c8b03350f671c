import { NativeConnection, TransportError, type NativeConnectionOptions } from '@temporalio/worker';
import type { Logger } from 'pino';
import { UnavailableError } from '../src/lib/errors.js';
import { jittered } from '../src/lib/jitter.js';
import { pause } from '../src/lib/pause.js';

const PAUSE_MS = 2_000;

/**
 * Connects to Temporal. @throws UnavailableError with a readable sentence instead of the transport's error.
 */
export async function connect(options: NativeConnectionOptions): Promise<NativeConnection> {
  try {
    return await NativeConnection.connect(options);
  } catch (cause) {
    if (!(cause instanceof TransportError)) throw cause;
    throw new UnavailableError(
      `Temporal does not answer at ${options.address ?? 'its usual address'}`,
      { cause },
    );
  }
}

/** Connects as soon as Temporal answers; undefined if the signal aborts first. */
export async function connectPatiently(
  options: NativeConnectionOptions,
  log: Logger,
  signal: AbortSignal,
): Promise<NativeConnection | undefined> {
  while (!signal.aborted) {
    try {
      return await connect(options);
    } catch (error) {
      if (!(error instanceof UnavailableError)) throw error;
      log.warn(`${error.message}; retrying`);
      await pause(jittered(PAUSE_MS), signal);
    }
  }
  return undefined;
}
