import { randomBytes } from 'node:crypto';
import { pino, type Logger } from 'pino';
import { LOG_SERIALIZERS } from '../../src/platform/process/log.js';
import { agentPlaces } from './agent-places.js';

/** The web API's administrator, by `ADMIN_EMAILS`. */
export const ADMIN_EMAIL = 'admin@example.com';

/**
 * The environment of one fixture.
 *
 * @param made what the fixture's servers and stubs say.
 * @param given what the test wants instead; undefined takes a variable away.
 */
export function testEnvironment(
  made: Readonly<Record<string, string>>,
  given: Readonly<Record<string, string | undefined>> = {},
): Record<string, string | undefined> {
  return {
    ENCRYPTION_KEY: randomBytes(32).toString('base64'),
    TRUSTED_PROXIES: '127.0.0.1',
    ADMIN_EMAILS: ADMIN_EMAIL,
    AI_PROVIDER: 'openai',
    ...agentPlaces(),
    AGENT_HOST_CAPACITY: '100',
    WATCHDOG_CHECK_INTERVAL: '2s',
    ...made,
    ...given,
  };
}

/** A log that is kept, a JSON object a line, instead of shown. */
export function keptLog(): { log: Logger; lines: string[] } {
  const lines: string[] = [];
  return {
    log: pino(
      { level: 'debug', serializers: LOG_SERIALIZERS },
      { write: (line: string) => lines.push(line) },
    ),
    lines,
  };
}
