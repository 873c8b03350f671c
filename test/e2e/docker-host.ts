import { execFile } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, connect, type AddressInfo, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import type Docker from 'dockerode';
import { keepsIdOutsideData } from '../../dev/docker/engine-id.js';
import { answers } from '../../dev/docker/find-docker.js';
import { findProgram } from '../../dev/processes/find-program.js';
import { lastLines, startProcess, type ServerProcess } from '../../dev/processes/process.js';
import { poll } from '../../dev/poll.js';
import { builtProgram } from '../../dev/root.js';
import { connectDocker } from '../../src/docker/containers/docker-client.js';

const run = promisify(execFile);

/** True if this machine can simulate several Docker hosts. */
export const hostsPossible =
  process.platform === 'linux' &&
  process.getuid?.() === 0 &&
  (await Promise.all(['dockerd', 'ip', 'nsenter'].map(findProgram))).every(Boolean);

/** Addresses on this machine that a host's worker connects to. */
export interface Reached {
  readonly database: string;
  readonly temporal: string;
}

/** The addresses as reached from the host. */
interface ReachedFromHost extends Reached {
  /** The host's own address on the link to this machine. */
  readonly address: string;
}

/**
 * A simulated Docker host: a network namespace with an engine and a worker. It reaches two ports of this
 * machine; this machine reaches only the engine's socket.
 */
export class DockerHost {
  readonly docker: Docker;
  readonly #socket: string;
  readonly #forwards: Server[] = [];
  #engine: ServerProcess | undefined;
  #worker: ServerProcess | undefined;
  #workerEnv: NodeJS.ProcessEnv = {};

  readonly #folder: string;
  readonly #network: string;

  private constructor(
    readonly id: string,
    folder: string,
    network: string,
  ) {
    this.#folder = folder;
    this.#network = network;

    this.#socket = path.join(folder, 'docker.sock');
    this.docker = connectDocker(`unix://${this.#socket}`);
  }

  /** Creates a host on which nothing runs yet. Close it even if a later step fails. */
  static async make(id: string): Promise<DockerHost> {
    const folder = await mkdtemp(path.join(tmpdir(), 'aps-host-'));
    const network = `aps-${randomBytes(4).toString('hex')}`;
    await run('ip', ['netns', 'add', network]);
    await run('ip', ['-n', network, 'link', 'set', 'lo', 'up']);
    return new DockerHost(id, folder, network);
  }

  async startEngine(): Promise<void> {
    const at = (name: string) => path.join(this.#folder, name);
    await rm(at('docker.pid'), { force: true });
    const config = (await keepsIdOutsideData()) ? { 'deprecated-key-path': at('key.json') } : {};
    await writeFile(at('daemon.json'), JSON.stringify(config));
    const engine = await this.#startInside('docker', 'dockerd', [
      `--data-root=${at('data')}`,
      `--exec-root=${at('exec')}`,
      `--pidfile=${at('docker.pid')}`,
      `--host=unix://${this.#socket}`,
      '--shutdown-timeout=1',
      `--config-file=${at('daemon.json')}`,
    ]);
    this.#engine = engine;
    const up = () => answers(`unix://${this.#socket}`);
    const ready = await poll(async () => (engine.hasEnded() || (await up()) ? true : undefined), {
      timeoutMs: 60_000,
    });
    if (!ready || engine.hasEnded())
      throw new Error(`the engine did not start:\n${lastLines(engine.logFile)}`);
  }

  /** @param env overrides of the database, Temporal and engine settings. */
  async startWorker(env: NodeJS.ProcessEnv = this.#workerEnv): Promise<void> {
    this.#workerEnv = env;
    const main = builtProgram('worker', 'main.js');
    const args = ['--enable-source-maps', main];
    this.#worker = await this.#startInside('worker', process.execPath, args, {
      ...process.env,
      AGENT_HOST: this.id,
      DOCKER_HOST: `unix://${this.#socket}`,
      ...env,
    });
  }

  /**
   * Starts a second worker that is refused.
   *
   * @returns its exit and its whole log, once it has ended.
   */
  async refusedWorker(env: NodeJS.ProcessEnv): Promise<{ how: string; log: string }> {
    const args = ['--enable-source-maps', builtProgram('worker', 'main.js')];
    const worker = await this.#startInside('refused-worker', process.execPath, args, {
      ...process.env,
      DOCKER_HOST: `unix://${this.#socket}`,
      ...this.#workerEnv,
      WORKER_METRICS_LISTEN: '127.0.0.1:9466',
      ...env,
    });
    return { how: await worker.ended, log: await readFile(worker.logFile, 'utf8') };
  }

  /** Kills the engine without a shutdown, as a power cut would. */
  async killEngine(): Promise<void> {
    const runtime = await readFile(
      path.join(this.#folder, 'exec/containerd/containerd.pid'),
      'utf8',
    );
    await this.#engine?.stop(0);
    // containerd dies with the engine; the next engine hangs while it is a zombie.
    const gone = () => Promise.resolve(existsSync(`/proc/${runtime}`) ? undefined : true);
    await poll(gone, { timeoutMs: 20_000 });
  }

  async killWorker(): Promise<void> {
    await this.#worker?.stop(0);
  }

  /** The worker's last log lines, shown when a test fails. */
  get workerLog(): string {
    return this.#worker === undefined ? '' : lastLines(this.#worker.logFile).slice(-4_000);
  }

  /** Links the host to this machine and returns the addresses at which it reaches the loopback ports. */
  async reach({ database, temporal }: Reached): Promise<ReachedFromHost> {
    const subnet = `169.254.${randomInt(1, 255)}`;
    const block = randomInt(0, 63) * 4;
    const [here, there] = [`${subnet}.${block + 1}`, `${subnet}.${block + 2}`];
    const link = `v${this.#network.slice(4)}`;
    await run('ip', [
      ...['link', 'add', link, 'type', 'veth'],
      ...['peer', 'name', 'uplink', 'netns', this.#network],
    ]);
    await run('ip', ['addr', 'add', `${here}/30`, 'dev', link]);
    await run('ip', ['link', 'set', link, 'up']);
    await run('ip', ['-n', this.#network, 'addr', 'add', `${there}/30`, 'dev', 'uplink']);
    await run('ip', ['-n', this.#network, 'link', 'set', 'uplink', 'up']);
    const url = new URL(database);
    url.host = await this.#forward(here, Number(url.port));
    const [, port] = temporal.split(':');
    return {
      database: url.href,
      temporal: await this.#forward(here, Number(port)),
      address: there,
    };
  }

  /** Removes all containers, processes and mounts of the host, in any state. */
  async close(): Promise<void> {
    await this.#worker?.stop(0);
    for (const forward of this.#forwards) forward.close();
    try {
      if (this.#engine) {
        // Only an engine can remove containers that a killed engine left running.
        if (this.#engine.hasEnded()) await this.startEngine();
        for (const { Id } of await this.docker.listContainers({ all: true })) {
          await this.docker.getContainer(Id).remove({ force: true, v: true });
        }
        await this.#engine.stop(20_000);
      }
    } finally {
      const { stdout: pids } = await run('ip', ['netns', 'pids', this.#network]);
      for (const pid of pids.split('\n').filter(Boolean)) process.kill(Number(pid), 'SIGKILL');
      await run('ip', ['netns', 'delete', this.#network]); // and the host's link with it
      const mounts = await readFile('/proc/self/mounts', 'utf8');
      for (const line of mounts.split('\n').reverse()) {
        const [, at = ''] = line.split(' ');
        if (at.startsWith(`${this.#folder}/`)) await run('umount', ['--lazy', at]);
      }
      await rm(this.#folder, { recursive: true, force: true, maxRetries: 3 });
    }
  }

  #startInside(
    name: string,
    command: string,
    args: readonly string[],
    env: NodeJS.ProcessEnv = process.env,
  ): Promise<ServerProcess> {
    return startProcess({
      name,
      command: 'nsenter',
      args: [`--net=/run/netns/${this.#network}`, command, ...args],
      env,
      runDir: path.join(this.#folder, 'run'),
      // Node programs end when their IPC channel closes.
      ipc: command === process.execPath,
    });
  }

  /** Forwards connections from an address of this machine to a port on its loopback. */
  async #forward(address: string, port: number): Promise<string> {
    const server = createServer((from) => {
      const to = connect(port, '127.0.0.1');
      from.pipe(to).pipe(from);
      from.on('error', () => to.destroy());
      to.on('error', () => from.destroy());
    });
    this.#forwards.push(server);
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen(0, address, resolve);
    });
    const { port: own } = server.address() as AddressInfo; // a TCP listener
    return `${address}:${own}`;
  }
}
