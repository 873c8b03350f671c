import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import {
  type DockerDaemon,
  dockerDaemonPlace,
  startDockerDaemon,
} from '../../scripts/engines/docker-daemon.js';
import { poll } from '../../scripts/poll.js';
import { run } from '../../scripts/run.js';
import { connectEngine } from '../../src/containers/engine.js';
import type { BenchEngine } from './engine.js';

/** A Docker engine that a benchmark may kill. */
export class OwnEngine implements BenchEngine {
  readonly host: string;
  readonly docker;
  private daemon: DockerDaemon | undefined;

  constructor(private readonly folder: string) {
    this.host = dockerDaemonPlace(this.dataDir).host;
    this.docker = connectEngine(this.host);
  }

  /** @returns when it answered, in Unix milliseconds. */
  async start(): Promise<number> {
    this.daemon = await startDockerDaemon(this.dataDir, path.join(this.folder, 'run-docker'));
    return Date.now();
  }

  /** As a power cut would: without a word. */
  async kill(): Promise<void> {
    const { execRoot } = dockerDaemonPlace(this.dataDir);
    const runtime = await readFile(path.join(execRoot, 'exec/containerd/containerd.pid'), 'utf8');
    await this.daemon?.process.stop(0);
    // It dies with the engine, and the next engine waits for it in vain as long as it is there.
    const gone = () => Promise.resolve(existsSync(`/proc/${runtime}`) ? undefined : true);
    await poll(gone, { timeoutMs: 20_000 });
  }

  async stop(): Promise<void> {
    await this.daemon?.stop();
    // What an engine that was killed has mounted stays, and would keep its folder from going.
    const mounts = await readFile('/proc/self/mounts', 'utf8');
    for (const line of mounts.split('\n').reverse()) {
      const [, at = ''] = line.split(' ');
      if (`${at}/`.startsWith(`${this.dataDir}/`)) {
        await run('umount', ['--lazy', at], { timeout: 10_000 });
      }
    }
  }

  private get dataDir(): string {
    return path.join(this.folder, 'docker');
  }
}
