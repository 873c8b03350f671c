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

/** A Docker engine of our own. */
export interface DockerDaemon {
  /** Its DOCKER_HOST. */
  readonly host: string;
  readonly process: ServerProcess;
  stop(): Promise<void>;
}

/** Starts `dockerd` as root on Linux, or takes over the one that a killed start left behind. */
export async function startDockerDaemon(dataDir: string, runDir: string): Promise<DockerDaemon> {
  const { execRoot, host } = dockerDaemonPlace(dataDir);
  // Whoever answers at a socket in there is root's engine.
  await ensureOwnFolder(execRoot);

  const leftover = await readRecord(runDir, 'docker');
  if (leftover && (await answers(host))) {
    say('Taking over the Docker engine that an earlier start left running.');
    const daemon = adoptProcess(leftover, 'docker', runDir);
    return { host, process: daemon, stop: () => stopDaemon(daemon, execRoot) };
  }
  if (leftover) await endProcess(leftover, 'SIGTERM', STOP_TIMEOUT_MS);

  await refuseNextToAnother();
  const dockerd = (await findProgram('dockerd')) ?? (await installDocker());
  const namespaces = await withRemappedUser(await chooseUserNamespaces(dataDir));
  say('Starting a Docker engine of our own: this is root on Linux, and none was found ...');
  if (!namespaces.on) say(`Agents share this machine's users: ${namespaces.why}.`);
  const start = async (remapped: boolean) => {
    const daemon = await launch(dataDir, runDir, { dockerd, remapped });
    return { daemon, outcome: await outcomeOf(daemon, host) };
  };
  let { daemon, outcome } = await start(namespaces.on);
  if (outcome !== 'ready' && cannotReadNetworks(daemon.logFile)) {
    say('The Docker engine was killed while it changed a network: starting it without them ...');
    await forgetNetworks(dataDir);
    ({ daemon, outcome } = await start(namespaces.on));
  }
  if (outcome === 'ended') ({ daemon, outcome } = await startAgain(namespaces, start));
  if (outcome !== 'ready') {
    const why = lastLines(daemon.logFile);
    // What its containers hold open stays where it is, for the next start to find them.
    await daemon.stop(STOP_TIMEOUT_MS);
    throw new StartFailure(`dockerd does not start; the end of ${daemon.logFile}:\n${why}`);
  }
  return { host, process: daemon, stop: () => stopDaemon(daemon, execRoot) };
}

/** Without that user Docker has no ids to give. */
async function withRemappedUser(namespaces: UserNamespaces): Promise<UserNamespaces> {
  if (!namespaces.on) return namespaces;
  try {
    await ensureRemappedUser();
    return namespaces;
  } catch (cause) {
    const why = `the user of containers cannot be made (${lastWords(cause)})`;
    if (!namespaces.kept) return { on: false, why };
    throw new StartFailure(`There are data of user namespaces, but ${why}.`, { cause });
  }
}

interface LaunchOptions {
  readonly dockerd: string;
  /** Whether users of containers are others than this machine's. */
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
      // How long agents have to end when the engine does.
      `--shutdown-timeout=${AGENT_STOP_SECONDS}`,
      ...(remapped ? ['--userns-remap=default'] : []),
    ],
    runDir,
  });
}

/** How the start of an engine went; `slow` when it is still at it. */
export type StartOutcome = 'ready' | 'ended' | 'slow';

async function outcomeOf(daemon: ServerProcess, host: string): Promise<StartOutcome> {
  const outcome = await poll(
    async () => (daemon.hasEnded() ? 'ended' : (await answers(host)) ? 'ready' : undefined),
    { timeoutMs: READY_TIMEOUT_MS },
  );
  return outcome ?? 'slow';
}

/**
 * Starts an engine that has ended once more, as it was: that may have been by chance. Only when it ends
 * again is it started without users of its own, and never where it was no more than slow.
 */
export async function startAgain<T extends { readonly outcome: StartOutcome }>(
  namespaces: UserNamespaces,
  start: (remapped: boolean) => Promise<T>,
): Promise<T> {
  const started = await start(namespaces.on);
  if (started.outcome !== 'ended' || !namespaces.on || namespaces.kept) return started;
  say("The Docker engine does not start with users of its own: agents share this machine's.");
  return start(false);
}

/** Where the engine of this data folder keeps what lives as long as it runs, and its address. */
export function dockerDaemonPlace(dataDir: string): { execRoot: string; host: string } {
  // A unix socket's path is limited to about 100 bytes and a clone may be anywhere, so not there; and
  // not in /tmp, where anybody can be first.
  const name = createHash('sha256').update(path.resolve(dataDir)).digest('hex').slice(0, 12);
  const execRoot = `/run/aps-docker-${name}`;
  return { execRoot, host: `unix://${execRoot}/docker.sock` };
}

async function stopDaemon(daemon: ServerProcess, execRoot: string): Promise<void> {
  await daemon.stop(STOP_TIMEOUT_MS);
  await unmountWithin(execRoot);
  await rm(execRoot, { recursive: true, force: true });
}

/** Two engines on one network overwrite each other's firewall rules. */
async function refuseNextToAnother(): Promise<void> {
  const network = await readlink('/proc/self/ns/net');
  for (const pid of (await readdir('/proc')).filter((entry) => /^\d+$/.test(entry))) {
    try {
      if ((await readFile(`/proc/${pid}/comm`, 'utf8')).trim() !== 'dockerd') continue;
      if ((await readlink(`/proc/${pid}/ns/net`)) !== network) continue;
      const args = (await readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0');
      const host = args.join(' ').match(/(?:unix|tcp):\/\/[^ ]+/)?.[0] ?? 'its address';
      throw new StartFailure(
        `Another Docker engine runs here (process ${pid}), and two would disturb each other: set DOCKER_HOST=${host} to use it.`,
      );
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== 'ENOENT' && code !== 'ESRCH') throw error; // that process has ended meanwhile
    }
  }
}

async function installDocker(): Promise<string> {
  if (!(await hasApt())) {
    throw new StartFailure('No Docker engine is installed: install one, then start again.');
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
  if (dockerd === undefined) throw new StartFailure('docker.io was installed, but has no dockerd.');
  return dockerd;
}
