import { execFile } from 'node:child_process';
import { existsSync, statfsSync } from 'node:fs';
import path from 'node:path';
import { agentSettings } from '../agents/lifecycle/settings.js';
import type { Environment } from '../platform/environment/read.js';
import { processSettings } from '../platform/process/settings.js';
import { checkOf, failure, ok, warning, type Check, type Finding } from './check.js';

/** Checks of this machine: Node, iptables and the disk of the platform's own files. */

const NEEDED_MAJOR = 20;
const NEEDED_MINOR = 19;

export const nodeCheck = (version = process.versions.node): Check => ({
  name: 'node',
  run: () => Promise.resolve([nodeFinding(version)]),
});

function nodeFinding(version: string): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > NEEDED_MAJOR || (major === NEEDED_MAJOR && minor >= NEEDED_MINOR))
    return ok(`Node ${version} runs this program.`);
  return failure(
    `Node ${version} is too old: install Node 24 (${NEEDED_MAJOR}.${NEEDED_MINOR} or newer works).`,
  );
}

/** Folders of system programs, which users' PATH often lacks. */
const SYSTEM_FOLDERS: readonly string[] = ['/usr/sbin', '/sbin', '/usr/local/sbin'];

const PROGRAM_MS = 3_000;

/** Files that containers have: the engine is then on the machine around this one. */
const CONTAINER_MARKS = ['/.dockerenv', '/run/.containerenv'];

/** The system, folders of programs besides PATH, and whether this process runs in a container. */
interface Place {
  readonly system: NodeJS.Platform;
  readonly folders: readonly string[];
  readonly isContainer: boolean;
}

const thisPlace = (): Place => ({
  system: process.platform,
  folders: SYSTEM_FOLDERS,
  isContainer: CONTAINER_MARKS.some((mark) => existsSync(mark)),
});

/** Checks that Docker on this machine finds iptables, with which it keeps agents apart. */
export const iptablesCheck = (place = thisPlace()): Check => ({
  name: 'iptables',
  run: (env) =>
    checkOf('iptables', { agents: agentSettings }, async ({ agents }) => [
      ...(agents.egress === 'open' ? [OPEN] : []),
      await programFinding(env, place, agents.isApiBesideHost ? failure : ifWorker),
    ]).run(env),
});

const OPEN = warning(
  'AGENT_EGRESS is open: no rules keep agents from private networks and this machine. Set guarded, ' +
    'unless your own rules do.',
);

/** Returns the finding for a machine that has no agents unless a worker runs there. */
const ifWorker = (text: string): Finding =>
  warning(`${text.replace(/\.$/, '')}, if a worker runs here.`);

async function programFinding(
  env: Environment,
  place: Place,
  fault: (text: string) => Finding,
): Promise<Finding> {
  if (place.system !== 'linux') return ok("Docker's own virtual machine has iptables.");
  const searched = [...(env.PATH ?? '').split(path.delimiter), ...place.folders]
    .filter((folder) => folder !== '')
    .map((folder) => path.join(folder, 'iptables'));
  const program = searched.find((file) => existsSync(file));
  if (program === undefined) {
    return place.isContainer
      ? ok('This is a container: the machine around it has iptables, see "hosts".')
      : fault(
          'iptables is missing, so Docker cannot keep agents apart: install the package iptables.',
        );
  }
  const version = await outputOf(program, ['--version']);
  return version === undefined
    ? fault(`${program} does not run: reinstall the package iptables.`)
    : ok(`${version} is installed.`);
}

function outputOf(program: string, args: readonly string[]): Promise<string | undefined> {
  return new Promise((resolve) => {
    execFile(program, args, { timeout: PROGRAM_MS }, (error, stdout) =>
      resolve(error ? undefined : stdout.trim()),
    );
  });
}

/** Free bytes of the disk with the journals: too few is a failure, few a warning. */
const MIN_FREE = 500_000_000;
const FEW_FREE = 2_000_000_000;

/** Checks the disk of the folder with the platform's journals. */
export const diskCheck = checkOf('disk', { process: processSettings }, ({ process }) =>
  Promise.resolve([diskFinding(path.resolve(process.dataDir))]),
);

function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(existing(folder));
  return bavail * bsize;
}

export function diskFinding(folder: string, free = freeBytes(folder)): Finding {
  const counted = `The disk of ${folder} (DATA_DIR) has ${Math.floor(free / 1_000_000)} MB free`;
  if (free < MIN_FREE) return failure(`${counted}: free ${MIN_FREE / 1_000_000} MB.`);
  return free < FEW_FREE ? warning(`${counted}: free some space soon.`) : ok(`${counted}.`);
}

/** Returns the folder, or the nearest one above that exists. */
function existing(folder: string): string {
  const parent = path.dirname(folder);
  return existsSync(folder) || parent === folder ? folder : existing(parent);
}
