import { destination, pino, type Logger } from 'pino';
import type { Config } from './config.js';

/**
 * The process's log: a JSON object a line on stdout. Secrets are never given to it. Lines that
 * come while one is being written go out together, and those at the process's end are kept.
 */
export function createLogger(name: string, config: Pick<Config, 'logLevel'>): Logger {
  return pino({ name, level: config.logLevel }, destination({ dest: 1, sync: false }));
}
