import { step } from './report.js';
import { minimalEnvironment } from './processes/minimal-environment.js';
import { run } from './processes/run.js';
import { findProgram } from './processes/find-program.js';

/** Debian's redis-server, installed when missing where root can; undefined when it cannot be had. */
export async function obtainRedisServer(): Promise<string | undefined> {
  const found = await findProgram('redis-server');
  if (found !== undefined || process.getuid?.() !== 0) return found;
  if ((await findProgram('apt-get')) === undefined) return undefined;
  return step('Installing redis-server with apt-get, for the tests of shared limits', async () => {
    const options = {
      timeout: 300_000,
      env: { ...minimalEnvironment(), DEBIAN_FRONTEND: 'noninteractive' },
    };
    try {
      await run('apt-get', ['update', '-q'], options);
      await run('apt-get', ['install', '-qy', '--no-install-recommends', 'redis-server'], options);
    } catch {
      return undefined; // the test that needs it says what to install
    }
    return findProgram('redis-server');
  });
}
