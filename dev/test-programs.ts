import { hasApt, installPackages } from './apt.js';
import { exitCodeOf } from './processes/run.js';
import { findProgram } from './processes/find-program.js';
import { step } from './report.js';

/** A program that only tests need. */
interface TestProgram {
  /** Possible names; the first is the package's. */
  readonly names: readonly [string, ...string[]];
  /** Name of the Debian package. */
  readonly package: string;
  readonly purpose: string;
}

/**
 * @returns the path; undefined if it cannot be obtained: the tests that need it name the package to
 *   install.
 */
export const obtainRedisServer = () =>
  obtain({
    names: ['redis-server'],
    package: 'redis-server',
    purpose: 'the tests of shared limits',
  });

/**
 * @returns the path; undefined if it cannot be obtained: the tests that need it name the package to
 *   install.
 */
export const obtainChromium = () =>
  obtain({
    names: ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome'],
    package: 'chromium-headless-shell',
    purpose: 'the tests of the pages',
  });

/** @returns the path of Debian's ffmpeg, a source of the radio; undefined if it cannot be obtained. */
export const obtainFfmpeg = () =>
  obtain({ names: ['ffmpeg'], package: 'ffmpeg', purpose: 'the tests of the radio' });

/** @returns the path of ezstream, a source by libshout; undefined if it cannot be obtained. */
export const obtainEzstream = () =>
  obtain({ names: ['ezstream'], package: 'ezstream', purpose: 'the tests of the radio' });

/** @returns the path of HAProxy, which ends TLS before Icecast; undefined if it cannot be obtained. */
export const obtainHaproxy = () =>
  obtain({ names: ['haproxy'], package: 'haproxy', purpose: 'the tests of the radio' });

/** Finds a program; a missing one is installed if root can do so. */
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
