import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { icecastConfig, type IcecastAccount } from '../../src/radio/icecast-config.js';
import { hasApt, installPackages } from '../apt.js';
import { describeFailure, StartFailure } from '../failure.js';
import { poll } from '../poll.js';
import { findProgram } from '../processes/find-program.js';
import { lastLines, startProcess, type ServerProcess } from '../processes/process.js';
import { step } from '../report.js';

/** The account of Debian's package. */
const PACKAGE_ACCOUNT: IcecastAccount = { user: 'icecast2', group: 'icecast' };

const READY_TIMEOUT_MS = 10_000;
const STOP_TIMEOUT_MS = 5_000;

export interface IcecastOptions {
  /** Path of Debian's `icecast2`. */
  readonly program: string;
  /** Folder of the configuration. */
  readonly dir: string;
  /** Folder of the log and the process record. */
  readonly runDir: string;
  readonly port: number;
  /** Address at which Icecast reaches the backend API. */
  readonly backendUrl: string;
  readonly adminPassword: string;
  readonly authSecret: string;
  readonly connections?: number | undefined;
}

/** An Icecast on loopback. */
export interface RunningIcecast {
  readonly url: string;
  readonly process: ServerProcess;
  stop(): Promise<void>;
}

/** Finds Icecast, or installs Debian's where root may. @throws StartFailure with what to do */
export async function obtainIcecast({ manage }: { readonly manage: boolean }): Promise<string> {
  const found = await findIcecast();
  if (found !== undefined) return found;
  if (!manage || process.getuid?.() !== 0 || !(await hasApt())) {
    throw new StartFailure('Icecast is not installed: install the package icecast2.');
  }
  await step('Installing icecast2 with apt-get, for the radio', () =>
    installPackages(['icecast2']),
  ).catch((cause: unknown) => {
    const message = `Icecast could not be installed: ${describeFailure(cause)}`;
    throw new StartFailure(message, { cause });
  });
  const installed = await findIcecast();
  if (installed !== undefined) return installed;
  throw new StartFailure('The package icecast2 has no program icecast2.');
}

const findIcecast = async (): Promise<string | undefined> =>
  (await findProgram('icecast2')) ?? findProgram('icecast');

/** Starts Icecast, and waits until it answers. @throws StartFailure */
export async function startIcecast(options: IcecastOptions): Promise<RunningIcecast> {
  const { adminPassword, authSecret, backendUrl, connections, dir, port, program, runDir } =
    options;
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const file = path.join(dir, 'icecast.xml');
  const config = icecastConfig({
    listen: { address: '127.0.0.1', port },
    backendUrl,
    adminPassword,
    authSecret,
    connections,
    // Icecast reads the configuration first, and changes to the account then.
    account: process.getuid?.() === 0 ? PACKAGE_ACCOUNT : undefined,
  });
  writeFileSync(file, config, { mode: 0o600 });
  chmodSync(file, 0o600); // of an earlier start's file
  const icecast = await startProcess({
    name: 'icecast',
    command: program,
    args: ['-c', file],
    runDir,
  });
  const url = `http://127.0.0.1:${port}`;
  const stop = () => icecast.stop(STOP_TIMEOUT_MS);
  const outcome = await Promise.race([
    poll(() => answers(url), { timeoutMs: READY_TIMEOUT_MS }),
    icecast.ended,
  ]);
  if (outcome === true) return { url, process: icecast, stop };
  await stop();
  throw new StartFailure(
    `Icecast ${outcome ?? 'does not answer'}; the end of ${icecast.logFile}:\n${lastLines(icecast.logFile)}`,
  );
}

/** Returns true once the address answers, regardless of the status. */
function answers(url: string): Promise<true | undefined> {
  return new Promise((resolve) => {
    const request = http.get(url, { agent: false, timeout: 1_000 }, (response) => {
      response.resume();
      resolve(true);
    });
    request.on('timeout', () => request.destroy());
    request.on('error', () => resolve(undefined));
  });
}
