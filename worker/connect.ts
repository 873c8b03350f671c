import { NativeConnection, TransportError, type NativeConnectionOptions } from '@temporalio/worker';
import type { Logger } from 'pino';
import { UnavailableError } from '../src/lib/errors.js';
import { jittered } from '../src/lib/jitter.js';
import { pause } from '../src/lib/pause.js';

/** Between two attempts at a connection. */
const PAUSE_MS = 2_000;

/**
 * Connects to Temporal.
 *
 * @throws UnavailableError, which says in a sentence instead of in the transport's own words that
 *   nobody is there.
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

/** The same as soon as somebody is there; undefined when the signal aborts first. */
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
      log.warn(`${error.message}; it is tried again`);
      await pause(jittered(PAUSE_MS), signal);
    }
  }
  return undefined;
}
