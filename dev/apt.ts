import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { findProgram } from './processes/find-program.js';
import { minimalEnvironment } from './processes/minimal-environment.js';
import { exitCodeOf, run } from './processes/run.js';
import { stopping } from './processes/stopping.js';

const TIMEOUT_MS = 600_000;

/** apt-get waits for nobody who reads its lists at the same time: it fails, and is run again. */
const TRIES = 6;
const PAUSE_MS = 5_000;

/** One at a time: they share a lock. */
let last: Promise<unknown> = Promise.resolve();

/** Whether this is a machine on which packages of Debian can be installed. */
export async function hasApt(): Promise<boolean> {
  return existsSync('/etc/debian_version') && (await findProgram('apt-get')) !== undefined;
}

/** Installs packages of Debian, one call after another. @throws what apt-get failed with. */
export function installPackages(
  packages: readonly string[],
  { pauseMs = PAUSE_MS }: { readonly pauseMs?: number } = {},
): Promise<void> {
  const installed = last.then(() => install(packages, pauseMs));
  last = installed.catch(() => undefined); // whoever asked is told; the next one is not in their way
  return installed;
}

async function install(packages: readonly string[], pauseMs: number): Promise<void> {
  await aptGet(['update', '-q'], pauseMs);
  await aptGet(['install', '-qy', '--no-install-recommends', ...packages], pauseMs);
}

async function aptGet(args: readonly string[], pauseMs: number): Promise<void> {
  const env = { ...minimalEnvironment(), DEBIAN_FRONTEND: 'noninteractive' };
  for (let attempt = 1; ; attempt++) {
    try {
      await run('apt-get', args, { timeout: TIMEOUT_MS, env });
      return;
    } catch (error) {
      if (exitCodeOf(error) === undefined || attempt === TRIES) throw error;
      await sleep(pauseMs, undefined, { signal: stopping.signal });
    }
  }
}
