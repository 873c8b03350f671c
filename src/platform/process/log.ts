import { destination, pino, type Logger } from 'pino';
import { describeError } from '../../lib/describe-error.js';
import type { ProcessSettings } from './settings.js';

/** Limits of the log's buffer: one write costs as much as the rest of several lines. */
const WRITE_BYTES = 12_288;
const WRITE_EVERY_MS = 250;

/** Serializers that log errors without their secrets. */
export const LOG_SERIALIZERS = { err: (error: unknown) => describeError(error) };

/**
 * Makes the process's logger: one JSON object a line on stdout. Callers pass no secrets; of errors (`err`)
 * only safe fields are logged. Lines are buffered briefly, and flushed at exit unless the process is killed.
 */
export function createLogger(
  name: string,
  { logLevel }: Pick<ProcessSettings, 'logLevel'>,
): Logger {
  return pino(
    { name, level: logLevel, serializers: LOG_SERIALIZERS },
    destination({ dest: 1, sync: false, minLength: WRITE_BYTES, periodicFlush: WRITE_EVERY_MS }),
  );
}
