import { pino, type Logger } from 'pino';
import type { Config } from './config.js';

/** The process's log: a JSON object a line on stdout. Secrets are never given to it. */
export function createLogger(name: string, config: Pick<Config, 'logLevel'>): Logger {
  return pino({ name, level: config.logLevel });
}
