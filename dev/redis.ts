import { hasApt, installPackages } from './apt.js';
import { exitCodeOf } from './processes/run.js';
import { findProgram } from './processes/find-program.js';
import { step } from './report.js';

/** Debian's redis-server, installed when missing where root can; undefined when it cannot be had. */
export async function obtainRedisServer(): Promise<string | undefined> {
  const found = await findProgram('redis-server');
  if (found !== undefined || process.getuid?.() !== 0 || !(await hasApt())) return found;
  return step('Installing redis-server with apt-get, for the tests of shared limits', async () => {
    try {
      await installPackages(['redis-server']);
    } catch (error) {
      if (exitCodeOf(error) === undefined) throw error;
      return undefined; // the test that needs it says what to install
    }
    return findProgram('redis-server');
  });
}
