import { createHash } from 'node:crypto';
import { readdir, readFile, readlink, rm } from 'node:fs/promises';
import path from 'node:path';
import { hasApt, installPackages } from '../apt.js';
import { StartFailure } from '../failure.js';
import { poll } from '../poll.js';
import { say, step } from '../report.js';
import { lastWords } from '../processes/run.js';
import { answers } from './find-docker.js';
import { cannotReadNetworks, forgetNetworks } from './docker-networks.js';
import { findProgram } from '../processes/find-program.js';
import { unmountWithin } from './mounts.js';
import { ensureOwnFolder } from './own-folder.js';
import { ensureRemappedUser } from './remapped-user.js';
import { chooseUserNamespaces, type UserNamespaces } from './user-namespaces.js';
import {
  adoptProcess,
  endProcess,
  lastLines,
  readRecord,
  startProcess,
  type ServerProcess,
} from '../processes/process.js';
const READY_TIMEOUT_MS = 60_000;
const AGENT_STOP_SECONDS = 30;
const STOP_TIMEOUT_MS = (AGENT_STOP_SECONDS + 30) * 1_000;

/** A Docker engine that `npm start` runs. */
export interface DockerDaemon {
  /** The engine's DOCKER_HOST. */
  readonly host: string;
  readonly process: ServerProcess;
  stop(): Promise<void>;
}

/** Starts `dockerd` as root on Linux, or adopts the engine that a killed start left running. */
export async function startDockerDaemon(dataDir: string, runDir: string): Promise<DockerDaemon> {
  const { execRoot, host } = dockerDaemonPlace(dataDir);
  // An engine that answers at a socket in this folder is trusted as root's.
  await ensureOwnFolder(execRoot);

  const leftover = await readRecord(runDir, 'docker');
  if (leftover && (await answers(host))) {
    say('Adopting the Docker engine that an earlier start left running.');
    const daemon = adoptProcess(leftover, 'docker', runDir);
    return { host, process: daemon, stop: () => stopDaemon(daemon, execRoot) };
  }
  if (leftover) await endProcess(leftover, 'SIGTERM', STOP_TIMEOUT_MS);

  await refuseNextToAnother();
  const dockerd = (await findProgram('dockerd')) ?? (await installDocker());
  const namespaces = await withRemappedUser(await chooseUserNamespaces(dataDir));
  say('Starting a Docker engine: this is root on Linux, and no engine was found ...');
  if (!namespaces.on) say(`Agents run under this machine's user ids: ${namespaces.why}.`);
  const start = async (remapped: boolean) => {
    const daemon = await launch(dataDir, runDir, { dockerd, remapped });
    return { daemon, outcome: await outcomeOf(daemon, host) };
  };
  let { daemon, outcome } = await start(namespaces.on);
  if (outcome !== 'ready' && cannotReadNetworks(daemon.logFile)) {
    say(
      'The Docker engine was killed while it changed a network: starting it without its networks ...',
    );
    await forgetNetworks(dataDir);
    ({ daemon, outcome } = await start(namespaces.on));
  }
  if (outcome === 'ended') ({ daemon, outcome } = await startAgain(namespaces, start));
  if (outcome !== 'ready') {
    const why = lastLines(daemon.logFile);
    // Files that the engine's containers hold open are kept, for the next start to find.
    await daemon.stop(STOP_TIMEOUT_MS);
    throw new StartFailure(`dockerd does not start; the end of ${daemon.logFile}:\n${why}`);
  }
  return { host, process: daemon, stop: () => stopDaemon(daemon, execRoot) };
}

/** Makes the user without which Docker has no ids to assign. */
async function withRemappedUser(namespaces: UserNamespaces): Promise<UserNamespaces> {
  if (!namespaces.on) return namespaces;
  try {
    await ensureRemappedUser();
    return namespaces;
  } catch (cause) {
    const why = `the user of containers cannot be made (${lastWords(cause)})`;
    if (!namespaces.kept) return { on: false, why };
    throw new StartFailure(`The Docker data need user namespaces, but ${why}.`, { cause });
  }
}

interface LaunchOptions {
  readonly dockerd: string;
  /** True if users in containers have other ids than this machine's users. */
  readonly remapped: boolean;
}

async function launch(
  dataDir: string,
  runDir: string,
  { dockerd, remapped }: LaunchOptions,
): Promise<ServerProcess> {
  const { execRoot, host } = dockerDaemonPlace(dataDir);
  await ensureOwnFolder(execRoot);
  await rm(path.join(execRoot, 'docker.pid'), { force: true });
  return startProcess({
    name: 'docker',
    command: dockerd,
    args: [
      `--data-root=${path.resolve(dataDir)}`,
      `--exec-root=${path.join(execRoot, 'exec')}`,
      `--pidfile=${path.join(execRoot, 'docker.pid')}`,
      `--host=${host}`,
      // Seconds that agents have to end when the engine stops.
      `--shutdown-timeout=${AGENT_STOP_SECONDS}`,
      ...(remapped ? ['--userns-remap=default'] : []),
    ],
    runDir,
  });
}

/** The outcome of an engine's start; `slow` while it still runs. */
export type StartOutcome = 'ready' | 'ended' | 'slow';

async function outcomeOf(daemon: ServerProcess, host: string): Promise<StartOutcome> {
  const outcome = await poll(
    async () => (daemon.hasEnded() ? 'ended' : (await answers(host)) ? 'ready' : undefined),
    { timeoutMs: READY_TIMEOUT_MS },
  );
  return outcome ?? 'slow';
}

/**
 * Starts an engine that ended once more in the same way, since the end may have been by chance. Only if
 * it ends again, it is started without user namespaces; never if it was only slow.
 */
export async function startAgain<T extends { readonly outcome: StartOutcome }>(
  namespaces: UserNamespaces,
  start: (remapped: boolean) => Promise<T>,
): Promise<T> {
  const started = await start(namespaces.on);
  if (started.outcome !== 'ended' || !namespaces.on || namespaces.kept) return started;
  say(
    "The Docker engine does not start with user namespaces: agents run under this machine's user ids.",
  );
  return start(false);
}

/** Returns the folder of the engine's runtime state for this data folder, and the engine's address. */
export function dockerDaemonPlace(dataDir: string): { execRoot: string; host: string } {
  // Outside the clone, because a unix socket's path is limited to about 100 bytes; and outside `/tmp`,
  // where any user could create the folder first.
  const name = createHash('sha256').update(path.resolve(dataDir)).digest('hex').slice(0, 12);
  const execRoot = `/run/aps-docker-${name}`;
  return { execRoot, host: `unix://${execRoot}/docker.sock` };
}

async function stopDaemon(daemon: ServerProcess, execRoot: string): Promise<void> {
  await daemon.stop(STOP_TIMEOUT_MS);
  await unmountWithin(execRoot);
  await rm(execRoot, { recursive: true, force: true });
}

/** Refuses to start next to another engine: two on one network overwrite each other's firewall rules. */
async function refuseNextToAnother(): Promise<void> {
  const network = await readlink('/proc/self/ns/net');
  for (const pid of (await readdir('/proc')).filter((entry) => /^\d+$/.test(entry))) {
    try {
      if ((await readFile(`/proc/${pid}/comm`, 'utf8')).trim() !== 'dockerd') continue;
      if ((await readlink(`/proc/${pid}/ns/net`)) !== network) continue;
      const args = (await readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0');
      const host = args.join(' ').match(/(?:unix|tcp):\/\/[^ ]+/)?.[0] ?? 'its address';
      throw new StartFailure(
        `Another Docker engine runs here (process ${pid}), and the two would disturb each other: set DOCKER_HOST=${host} to use it.`,
      );
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== 'ENOENT' && code !== 'ESRCH') throw error; // The process has ended in between.
    }
  }
}

async function installDocker(): Promise<string> {
  if (!(await hasApt())) {
    throw new StartFailure('No Docker engine is installed: install one, then restart.');
  }
  await step(
    "Installing Debian's docker.io with apt-get (MANAGE_DOCKER=never forbids it)",
    async () => {
      try {
        await installPackages(['docker.io', 'iptables']);
      } catch (cause) {
        throw new StartFailure(`apt-get could not install docker.io: ${lastWords(cause)}`, {
          cause,
        });
      }
    },
  );
  const dockerd = await findProgram('dockerd');
  if (dockerd === undefined)
    throw new StartFailure('docker.io was installed, but contains no dockerd.');
  return dockerd;
}
