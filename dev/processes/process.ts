import { spawn, type StdioOptions } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { readdir, readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { StartFailure } from '../failure.js';
import { stopping } from './stopping.js';
import { poll } from '../poll.js';
import { keepBounded, openLog } from './log-file.js';
import { minimalEnvironment } from './minimal-environment.js';
import { identify, isAlive, type ProcessIdentity } from './process-identity.js';

const runningProcesses = new Set<ServerProcess>();

/** A program to run, with its log and record. */
export interface ServerCommand {
  /** Name of the log and of the process record, also shown to people. */
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  /** Environment; minimal by default. */
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
  readonly uid?: number;
  readonly gid?: number;
  /** Folder of the records and logs. */
  readonly runDir: string;
  /** True if the child gets a channel, through which it can send messages and notices the end of its parent. */
  readonly ipc?: boolean;
  readonly onMessage?: (message: unknown) => void;
  /** Signal for a clean stop; SIGTERM by default. */
  readonly stopSignal?: NodeJS.Signals;
}

export interface ProcessRecord extends ProcessIdentity {
  readonly stopSignal: NodeJS.Signals;
}

/** A running child, recorded on disk until it ends. */
export interface ServerProcess {
  readonly pid: number;
  readonly logFile: string;
  /** Resolves with a short description of how the process ended. */
  readonly ended: Promise<string>;
  hasEnded(): boolean;
  /** Requests the process to end, and kills it with its group after `graceMs`; at once if 0. */
  stop(graceMs: number): Promise<void>;
}

/**
 * Starts a program in its own process group, so that a Ctrl-C in the terminal reaches only the launcher,
 * which stops everything in order.
 */
export async function startProcess(options: ServerCommand): Promise<ServerProcess> {
  stopping.signal.throwIfAborted();
  mkdirSync(options.runDir, { recursive: true, mode: 0o700 });
  const logFile = path.join(options.runDir, `${options.name}.log`);
  const log = openLog(logFile);
  const stdio: StdioOptions = ['ignore', log, log, ...(options.ipc ? (['ipc'] as const) : [])];
  const child = spawn(options.command, options.args, {
    cwd: options.cwd,
    env: options.env ?? minimalEnvironment(),
    uid: options.uid,
    gid: options.gid,
    detached: true,
    stdio,
  });
  closeSync(log);
  const stopBounding = keepBounded(logFile);

  const recordFile = recordPath(options.runDir, options.name);
  let over = false;
  const ended = new Promise<string>((resolve) => {
    const end = (how: string) => {
      over = true;
      stopBounding();
      rmSync(recordFile, { force: true });
      resolve(how);
    };
    child.once(
      'error',
      (error) => child.pid === undefined && end(`could not be run: ${error.message}`),
    );
    child.once('exit', (code, signal) =>
      end(signal ? `ended by ${signal}` : `ended with code ${code}`),
    );
  });
  if (options.onMessage) child.on('message', options.onMessage);
  const pid = child.pid;
  if (pid === undefined)
    throw new StartFailure(`${options.name} ${await ended} (${options.command})`);

  const stopSignal = options.stopSignal ?? 'SIGTERM';
  const running: ServerProcess = {
    pid,
    logFile,
    ended,
    hasEnded: () => over,
    stop: async (graceMs) => {
      if (over) return;
      if (graceMs === 0) return killGroup(pid, ended);
      child.kill(stopSignal);
      const timer = setTimeout(() => void killGroup(pid, ended), graceMs);
      await ended;
      clearTimeout(timer);
    },
  };
  // Added before the first await, so that a concurrent `killAll` ends this process too.
  runningProcesses.add(running);
  void ended.then(() => runningProcesses.delete(running));

  const identity = await identify(pid);
  const record: ProcessRecord | undefined = identity && { ...identity, stopSignal };
  if (record && !over) writeFileSync(recordFile, JSON.stringify(record));
  return running;
}

/** Kills all processes that still run: the last step before this process exits. */
export async function killAll(): Promise<void> {
  await Promise.all([...runningProcesses].map((running) => running.stop(0)));
}

/** Adopts a process that an earlier start had started. */
export function adoptProcess(recorded: ProcessRecord, name: string, runDir: string): ServerProcess {
  const logFile = path.join(runDir, `${name}.log`);
  const stopBounding = keepBounded(logFile);
  let over = false;
  const forget = () => {
    over = true;
    stopBounding();
    rmSync(recordPath(runDir, name), { force: true });
  };
  const ended = watchEnd(recorded).then(() => {
    forget();
    return 'ended';
  });
  return {
    pid: recorded.pid,
    logFile,
    ended,
    hasEnded: () => over,
    stop: async (graceMs) => {
      await endProcess(recorded, recorded.stopSignal, graceMs);
      forget(); // `ended` polls rarely, and does not keep this process alive.
    },
  };
}

/** Kills a process with all others in its group. */
async function killGroup(pid: number, ended: Promise<unknown>): Promise<void> {
  try {
    process.kill(process.platform === 'win32' ? pid : -pid, 'SIGKILL');
  } catch (error) {
    // On macOS, signalling a group that has only zombies left gives EPERM.
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ESRCH' && code !== 'EPERM') throw error;
  }
  await ended;
}

async function watchEnd(recorded: ProcessIdentity): Promise<void> {
  while (await isAlive(recorded)) await sleep(500, undefined, { ref: false });
}

/** Ends processes that a killed start left behind, except those in `keep`. */
export async function endLeftovers(
  runDir: string,
  keep: readonly string[] = [],
): Promise<string[]> {
  const files = existsSync(runDir) ? await readdir(runDir) : [];
  const names = files.flatMap((file) => /^(.+)\.process\.json$/.exec(file)?.[1] ?? []);
  const ended = names
    .filter((name) => !keep.includes(name))
    .map(async (name) => {
      const recorded = await readRecord(runDir, name);
      if (recorded) await endProcess(recorded, recorded.stopSignal, 10_000);
      await rm(recordPath(runDir, name), { force: true });
      return recorded ? [name] : [];
    });
  return (await Promise.all(ended)).flat();
}

/** Returns the process of an earlier start, if it still runs. */
export async function readRecord(runDir: string, name: string): Promise<ProcessRecord | undefined> {
  const file = recordPath(runDir, name);
  if (!existsSync(file)) return undefined;
  try {
    const recorded = JSON.parse(await readFile(file, 'utf8')) as ProcessRecord; // Written by startProcess.
    return (await isAlive(recorded)) ? recorded : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined; // The record was truncated by a power failure.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined; // The process is just ending.
    throw error;
  }
}

/** Ends a process that is not a child of this one, and waits for its end. */
export async function endProcess(
  recorded: ProcessIdentity,
  signal: NodeJS.Signals,
  graceMs: number,
): Promise<void> {
  const gone = async () => ((await isAlive(recorded)) ? undefined : true);
  for (const each of [signal, 'SIGKILL'] as const) {
    if ((await gone()) === true) return;
    try {
      process.kill(recorded.pid, each);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
    if ((await poll(gone, { timeoutMs: graceMs })) === true) return;
  }
  throw new StartFailure(
    `Process ${recorded.pid} of an earlier start cannot be ended: kill it and restart.`,
  );
}

/** Returns the end of a log, for a message about a failed start. */
export function lastLines(logFile: string, count = 5): string {
  const lines = readFileSync(logFile, 'utf8').trimEnd().split('\n');
  return lines.slice(-count).join('\n');
}

function recordPath(runDir: string, name: string): string {
  return path.join(runDir, `${name}.process.json`);
}
