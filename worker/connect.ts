import { NativeConnection, TransportError, type NativeConnectionOptions } from '@temporalio/worker';
import { reportNotice, reportReady } from '../src/platform/process/process-lifecycle.js';
import {
  ATTEMPT_MS,
  awayError,
  checkNamespace,
  untilTemporalAnswers,
  type TemporalPlace,
  type Waiting,
} from '../temporal/start-check.js';
import { pause } from '../src/lib/pause.js';

/** The connection's options, and the namespace that it must have. */
export interface WorkerPlace extends TemporalPlace {
  readonly connectionOptions: NativeConnectionOptions;
}

/**
 * Connects as soon as Temporal answers; undefined if the signal aborts first. While Temporal is unavailable,
 * the process counts as started. @throws UnknownNamespaceError unless `waiting` includes a missing namespace
 */
export function connectPatiently(
  place: WorkerPlace,
  waiting: Omit<Waiting, 'onAway'>,
): Promise<NativeConnection | undefined> {
  const onAway = (sentence: string) => {
    reportNotice(sentence);
    reportReady();
  };
  return untilTemporalAnswers(() => connect(place, waiting.signal), { ...waiting, onAway });
}

/** Connects once. @throws UnavailableError, UnknownNamespaceError */
async function connect(place: WorkerPlace, signal: AbortSignal): Promise<NativeConnection> {
  const connecting = NativeConnection.connect(place.connectionOptions);
  const timeUp = new AbortController();
  try {
    const late = pause(ATTEMPT_MS, AbortSignal.any([signal, timeUp.signal]));
    const connection = await Promise.race([connecting, late]);
    if (!connection) {
      void connecting.then((unused) => unused.close()).catch(() => undefined);
      throw awayError(place);
    }
    await checkNamespace(connection, place).catch(async (error: unknown) => {
      await connection.close();
      throw error;
    });
    return connection;
  } catch (error) {
    throw error instanceof TransportError ? awayError(place, error) : error;
  } finally {
    timeUp.abort();
  }
}
