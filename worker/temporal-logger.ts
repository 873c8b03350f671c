import { DefaultLogger, type LogLevel } from '@temporalio/worker';
import type { Logger } from 'pino';

const LEVELS = {
  TRACE: 'trace',
  DEBUG: 'debug',
  INFO: 'info',
  WARN: 'warn',
  ERROR: 'error',
} as const;

/** Returns a logger that sends the log lines of the Temporal SDK and of workflows to ours. */
export function temporalLogger(log: Logger): DefaultLogger {
  const level: LogLevel = log.isLevelEnabled('debug') ? 'DEBUG' : 'INFO';
  return new DefaultLogger(level, (entry) => {
    const { error, ...meta } = entry.meta ?? {};
    log[LEVELS[entry.level]](
      { ...meta, ...(error instanceof Error && { err: error }) },
      entry.message,
    );
  });
}
