import { destination, pino, type Logger } from 'pino';
import { describeError } from '../../lib/describe-error.js';
import type { ProcessSettings } from './settings.js';

/** A write costs as much as the rest of a line: they go out together, this late at most. */
const WRITE_BYTES = 4_096;
const WRITE_EVERY_MS = 250;

/** How errors are told. */
export const LOG_SERIALIZERS = { err: (error: unknown) => describeError(error) };

/**
 * The process's log: a JSON object a line on stdout. Secrets are never given to it, and of errors (`err`)
 * it takes what holds none. Lines wait for
 * each other a moment; those at the process's end are kept, unless it is killed.
 */
export function createLogger(
  name: string,
  { logLevel }: Pick<ProcessSettings, 'logLevel'>,
): Logger {
  return pino(
    { name, level: logLevel, serializers: LOG_SERIALIZERS },
    destination({
      dest: 1,
      sync: false,
      minLength: WRITE_BYTES,
      periodicFlush: WRITE_EVERY_MS,
    }),
  );
}
