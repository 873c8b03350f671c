import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { findProgram } from './processes/find-program.js';
import { minimalEnvironment } from './processes/minimal-environment.js';
import { exitCodeOf, run } from './processes/run.js';
import { stopping } from './processes/stopping.js';

const TIMEOUT_MS = 600_000;

/** apt-get does not wait for another process that holds the lock on its lists: it fails and is retried. */
const TRIES = 6;
const PAUSE_MS = 5_000;

/** Runs are serialized: they share a lock. */
let last: Promise<unknown> = Promise.resolve();

/** Reports whether Debian packages can be installed on this machine. */
export async function hasApt(): Promise<boolean> {
  return existsSync('/etc/debian_version') && (await findProgram('apt-get')) !== undefined;
}

/** Installs Debian packages, one call after another. @throws the failure of apt-get. */
export function installPackages(
  packages: readonly string[],
  { pauseMs = PAUSE_MS }: { readonly pauseMs?: number } = {},
): Promise<void> {
  const installed = last.then(() => install(packages, pauseMs));
  last = installed.catch(() => undefined); // The caller gets the failure; the next call is not affected.
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
