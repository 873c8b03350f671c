import { randomBytes } from 'node:crypto';
import { pino, type Logger } from 'pino';
import { LOG_SERIALIZERS } from '../../src/platform/process/log.js';
import { agentPlaces } from './agent-places.js';

/** Email address of the web API's administrator, from `ADMIN_EMAILS`. */
export const ADMIN_EMAIL = 'admin@example.com';

/**
 * Returns the environment of one fixture.
 *
 * @param made variables from the fixture's servers and stubs.
 * @param given variables that the test overrides; undefined removes a variable.
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

/** Creates a log that is stored instead of shown, each line a JSON object. */
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
