import { hasApt, installPackages } from './apt.js';
import { exitCodeOf } from './processes/run.js';
import { findProgram } from './processes/find-program.js';
import { step } from './report.js';

/** A program that only tests need. */
interface TestProgram {
  /** What it may be called; the first is that of the package. */
  readonly names: readonly [string, ...string[]];
  /** Of Debian. */
  readonly package: string;
  readonly purpose: string;
}

/** @returns its path; undefined when it cannot be had: the tests that need it say what to install. */
export const obtainRedisServer = () =>
  obtain({
    names: ['redis-server'],
    package: 'redis-server',
    purpose: 'the tests of shared limits',
  });

/** @returns its path; undefined when it cannot be had: the tests that need it say what to install. */
export const obtainChromium = () =>
  obtain({
    names: ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome'],
    package: 'chromium-headless-shell',
    purpose: 'the tests of the pages',
  });

/** Finds a program; where root can, it is installed when missing. */
async function obtain(wanted: TestProgram): Promise<string | undefined> {
  const found = await find(wanted.names);
  if (found !== undefined || process.getuid?.() !== 0 || !(await hasApt())) return found;
  return step(`Installing ${wanted.package} with apt-get, for ${wanted.purpose}`, async () => {
    try {
      await installPackages([wanted.package]);
    } catch (error) {
      if (exitCodeOf(error) === undefined) throw error;
      return undefined;
    }
    return find(wanted.names);
  });
}

async function find(names: readonly string[]): Promise<string | undefined> {
  for (const name of names) {
    const found = await findProgram(name);
    if (found !== undefined) return found;
  }
  return undefined;
}
