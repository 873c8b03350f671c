import { chmod, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { StartFailure } from '../dev/failure.js';
import { findProgram } from '../dev/processes/find-program.js';
import { minimalEnvironment } from '../dev/processes/minimal-environment.js';
import { lastWords, run } from '../dev/processes/run.js';
import { projectRoot } from '../dev/root.js';

/** Compose's release; later ones need a newer Go than Debian's and this product's machines have. */
const VERSION = '2.40.3';

const BUILD_MS = 30 * 60_000;
const LOAD_MS = 60_000;

/** The command line of Compose. */
export type Compose = readonly [program: string, ...args: string[]];

/**
 * Returns Compose of this machine, else one that is built once from its Go modules.
 * @throws StartFailure if there is neither Compose nor Go.
 */
export async function findCompose(cacheDir: string): Promise<Compose> {
  const docker = await findProgram('docker');
  const installed: Compose | undefined = docker ? [docker, 'compose'] : undefined;
  if (installed && (await isRecent(installed))) return installed;
  const folder = path.join(cacheDir, `docker-compose-${VERSION}`);
  const built = path.join(folder, 'docker-compose');
  if (!existsSync(built)) await build(folder, built);
  return [built];
}

/** Reports whether Compose is of the second major version, which reads the file. */
async function isRecent([program, ...args]: Compose): Promise<boolean> {
  const version = await run(program, [...args, 'version', '--short'], { timeout: LOAD_MS }).then(
    (output) => output.trim().replace(/^v/, ''),
    () => '0', // not installed
  );
  return Number.parseInt(version, 10) >= 2;
}

async function build(folder: string, built: string): Promise<void> {
  const go = await findProgram('go');
  if (go === undefined) {
    throw new StartFailure(
      'Neither "docker compose" nor Go is installed: install one of them, to load docker-compose.yml.',
    );
  }
  console.log(`Building Docker Compose ${VERSION} (some minutes, once) ...`);
  await mkdir(folder, { recursive: true });
  const source = await mkdtemp(path.join(folder, 'source-'));
  try {
    const needed = `github.com/docker/compose/v2`;
    await writeFile(
      path.join(source, 'go.mod'),
      `module build\n\ngo 1.24\n\nrequire ${needed} v${VERSION}\n`,
    );
    const file = path.join(source, 'docker-compose');
    const flags = [
      '-mod=mod',
      '-trimpath',
      '-ldflags',
      `-s -w -X ${needed}/internal.Version=v${VERSION}`,
    ];
    await run(go, ['build', ...flags, '-o', file, `${needed}/cmd`], {
      cwd: source,
      timeout: BUILD_MS,
    });
    await chmod(file, 0o755);
    await rename(file, built);
  } finally {
    await rm(source, { recursive: true, force: true });
  }
}

/**
 * Returns the project as Compose loads it, with the given variables beside those of the files.
 *
 * @param folder the folder with docker-compose.yml.
 */
export async function loadProject(
  [program, ...args]: Compose,
  variables: Readonly<Record<string, string>>,
  folder = projectRoot,
  files: readonly string[] = ['.env'],
): Promise<unknown> {
  const named = files.flatMap((file) => ['--env-file', file]);
  try {
    const output = await run(program, [...args, ...named, 'config', '--format', 'json'], {
      cwd: folder,
      env: { ...minimalEnvironment(), ...variables },
      timeout: LOAD_MS,
    });
    return JSON.parse(output);
  } catch (cause) {
    throw new StartFailure(`Compose does not load docker-compose.yml: ${lastWords(cause)}`, {
      cause,
    });
  }
}
