import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { lastWords, run } from '../../dev/processes/run.js';
import { step } from '../../dev/report.js';

const INSTALL_TIMEOUT_MS = 600_000;

/** A third-party program that cannot be measured here; the message is one sentence. */
export class AgainstMissing extends Error {
  override readonly name = 'AgainstMissing';
}

/**
 * Runs an installation command.
 *
 * @throws AgainstMissing if the program is missing or fails.
 */
export async function install(name: string, command: string, args: readonly string[]) {
  try {
    await run(command, args, { timeout: INSTALL_TIMEOUT_MS, shell: process.platform === 'win32' });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why = code === 'ENOENT' ? `${command} is not on this machine` : lastWords(error);
    throw new AgainstMissing(`${name} could not be installed: ${why}.`, { cause: error });
  }
}

/**
 * Fills a folder of the cache once; an interrupted run leaves nothing behind.
 *
 * @param what the step as shown to the developer: `Installing LiteLLM`.
 * @returns the folder.
 */
export async function installedOnce(
  cacheDir: string,
  name: string,
  what: string,
  fill: (fresh: string) => Promise<void>,
): Promise<string> {
  const folder = path.join(cacheDir, name);
  if (existsSync(folder)) return folder;
  await mkdir(cacheDir, { recursive: true });
  const fresh = await mkdtemp(path.join(cacheDir, 'fresh-'));
  try {
    await step(`${what} (once)`, () => fill(fresh));
    await rename(fresh, folder);
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
  return folder;
}

/**
 * Installs npm packages into a folder without running their scripts.
 *
 * @throws AgainstMissing
 */
export async function npmInstall(name: string, folder: string, packages: readonly string[]) {
  const options = ['--prefix', folder, '--ignore-scripts', '--no-audit', '--no-fund'];
  await install(name, 'npm', ['install', ...options, ...packages]);
}

/**
 * Installs PyPI packages into a folder.
 *
 * @throws AgainstMissing
 */
export async function pipInstall(
  name: string,
  python: string,
  folder: string,
  packages: readonly string[],
) {
  const options = ['--disable-pip-version-check', '-q', '--target', folder];
  await install(name, python, ['-m', 'pip', 'install', ...options, ...packages]);
}
