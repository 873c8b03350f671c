import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import {
  type DockerDaemon,
  dockerDaemonPlace,
  startDockerDaemon,
} from '../../dev/docker/docker-daemon.js';
import { unmountWithin } from '../../dev/docker/mounts.js';
import { poll } from '../../dev/poll.js';
import { connectDocker } from '../../src/docker/containers/docker-client.js';
import type { BenchEngine } from './engine.js';

/** A Docker engine that a benchmark may kill. */
export class OwnEngine implements BenchEngine {
  readonly host: string;
  readonly docker;
  #daemon: DockerDaemon | undefined;

  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;

    this.host = dockerDaemonPlace(this.#dataDir).host;
    this.docker = connectDocker(this.host);
  }

  /**
   * Starts the engine.
   *
   * @returns the time of its first answer, in Unix milliseconds.
   */
  async start(): Promise<number> {
    // Users inside containers are other users of this machine and must traverse the folder.
    await mkdir(this.#folder, { recursive: true, mode: 0o711 });
    this.#daemon = await startDockerDaemon(this.#dataDir, path.join(this.#folder, 'run-docker'));
    return Date.now();
  }

  /** Kills the engine abruptly, like a power cut. */
  async kill(): Promise<void> {
    const { execRoot } = dockerDaemonPlace(this.#dataDir);
    const runtime = await readFile(path.join(execRoot, 'exec/containerd/containerd.pid'), 'utf8');
    await this.#daemon?.process.stop(0);
    // containerd dies with the engine; the next engine would wait for it in vain while it still exists.
    const gone = () => Promise.resolve(existsSync(`/proc/${runtime}`) ? undefined : true);
    await poll(gone, { timeoutMs: 20_000 });
  }

  async stop(): Promise<void> {
    await this.#daemon?.stop();
    await this.#endShims();
    await unmountWithin(this.#dataDir);
  }

  /** Ends shims of containers that an engine was starting when it was killed; no engine manages them. */
  async #endShims(): Promise<void> {
    const { execRoot } = dockerDaemonPlace(this.#dataDir);
    for (const pid of (await readdir('/proc')).filter((entry) => /^\d+$/.test(entry))) {
      const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => ''); // the process has ended
      const isShim = command.includes('containerd-shim') && command.includes(`${execRoot}/`);
      if (isShim) process.kill(Number(pid), 'SIGKILL');
    }
  }

  get #dataDir(): string {
    return path.join(this.#folder, 'docker');
  }
}
