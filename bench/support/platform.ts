import { spawn, type ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { endLeftovers, readRecord } from '../../dev/processes/process.js';
import { StartFailure } from '../../dev/failure.js';
import { chooseUnusualPorts } from '../../dev/kept-ports.js';
import { readLocalChain, type LocalChain } from '../../dev/chain/local-chain.js';
import { poll } from '../../dev/poll.js';
import { freePort } from '../../dev/ports.js';
import { builtProgram, projectRoot } from '../../dev/root.js';
import { loadSecrets } from '../../dev/secrets.js';
import { databaseUrl } from '../../src/platform/database/roles.js';
import { endChild } from './child.js';
import type { AtEnd } from './cleanups.js';
import { makeFolder } from './folder.js';
import { usageOf, type Usage } from './process-tree.js';

const START_TIMEOUT_MS = 300_000;
const STOP_TIMEOUT_MS = 120_000;

/** Name of the variable that identifies a running platform without containers. */
const SHARED = 'BENCH_PLATFORM';

/** The location of a platform. */
interface Place {
  readonly dataDir: string;
  readonly webUrl: string;
  readonly backendUrl: string;
}

/** The whole platform as `npm start` runs it, with its own data folder and ports. */
export class BenchPlatform {
  readonly #launcher: ChildProcess | undefined;
  readonly #dataDir: string;

  private constructor(
    launcher: ChildProcess | undefined,
    dataDir: string,
    readonly webUrl: string,
    readonly backendUrl: string,
  ) {
    this.#launcher = launcher;
    this.#dataDir = dataDir;
  }

  /**
   * Starts a platform.
   *
   * @param env variables that differ from this process's environment.
   */
  static async start(dataDir: string, env: NodeJS.ProcessEnv): Promise<BenchPlatform> {
    await chooseUnusualPorts(dataDir);
    const [web, backend, agents] = [await freePort(), await freePort(), await freePort()];
    const launcher = spawn(
      process.execPath,
      ['--enable-source-maps', builtProgram('scripts', 'start.js')],
      {
        cwd: projectRoot,
        env: {
          ...process.env,
          DATA_DIR: dataDir,
          XDG_STATE_HOME: path.dirname(dataDir),
          HOST: '127.0.0.1',
          WEB_PORT: String(web),
          BACKEND_PORT: String(backend),
          AGENT_AI_PORT: String(agents),
          SUMMARIZER_PORT: '0',
          METRICS_PORT: '0',
          AGENT_AI_METRICS_PORT: '0',
          // The benchmark's single client sends more requests than a limit for real clients allows.
          RATE_LIMIT_REQUESTS: '10000000',
          RATE_LIMIT_AI_CALLS: '10000000',
          WORKER_METRICS_LISTEN: `127.0.0.1:${await freePort()}`,
          WEB_URL: '',
          BACKEND_URL: '',
          DATABASE_URL: '',
          TEMPORAL_ADDRESS: '',
          INTERNAL_API_KEY: '',
          ENCRYPTION_KEY: '',
          ...env,
        },
        // A Ctrl-C in the terminal then reaches only this process, which stops the platform in order.
        detached: true,
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    );
    const platform = new BenchPlatform(
      launcher,
      dataDir,
      `http://127.0.0.1:${web}`,
      `http://127.0.0.1:${backend}`,
    );
    await platform.#untilRunning(launcher);
    return platform;
  }

  /**
   * Starts a platform without containers in a folder of its own, behind a proxy on this machine. If the
   * environment names a `shared` platform, that one is returned and not stopped by this process.
   *
   * @param more variables that a shared platform does not have: with them, a platform is started.
   */
  static async withoutContainers(
    atEnd: AtEnd,
    more: NodeJS.ProcessEnv = {},
  ): Promise<BenchPlatform> {
    const running = process.env[SHARED];
    if (running !== undefined && Object.keys(more).length === 0) {
      const { dataDir, webUrl, backendUrl } = JSON.parse(running) as Place; // written by `shared`
      return new BenchPlatform(undefined, dataDir, webUrl, backendUrl);
    }
    const folder = await makeFolder(atEnd);
    const platform = await BenchPlatform.start(path.join(folder, 'data'), {
      TRUSTED_PROXIES: '127.0.0.1/32',
      MANAGE_DOCKER: 'never',
      // With an engine, the worker would find that the agents of these benchmarks have no containers.
      DOCKER_HOST: `unix://${path.join(folder, 'no-engine.sock')}`,
      AGENT_RUNTIME_IMAGE: 'none',
      ...more,
    });
    atEnd(() => platform.stop());
    return platform;
  }

  /** Environment variables that make benchmarks use this platform. */
  get shared(): Readonly<Record<string, string>> {
    const { webUrl, backendUrl } = this;
    const place: Place = { dataDir: this.#dataDir, webUrl, backendUrl };
    return { [SHARED]: JSON.stringify(place) };
  }

  get pid(): number {
    return this.#launcher?.pid ?? 0;
  }

  get internalApiKey(): string {
    return loadSecrets(this.#dataDir).internalApiKey;
  }

  get installation(): string {
    return loadSecrets(this.#dataDir).installation;
  }

  /** The services' `DATABASE_URL`. */
  get databaseUrl(): string {
    const server = `postgres://127.0.0.1:${this.#port('postgres')}/postgres`;
    const { servingPassword } = loadSecrets(this.#dataDir);
    return databaseUrl(server, 'agent_platform', 'agent_platform_api', servingPassword);
  }

  /** Returns the local chain for payments. */
  get chain(): LocalChain {
    const chain = readLocalChain(this.#dataDir);
    if (!chain) throw new RangeError('The platform has not started a chain');
    return chain;
  }

  get temporalAddress(): string {
    return `127.0.0.1:${this.#port('temporal')}`;
  }

  /** Returns the process id of a part: `api`, `agents-ai`, `worker`, `payments`, `postgres` or `temporal`. */
  pidOf(name: string): number {
    const file = path.join(this.#dataDir, 'run', `${name}.process.json`);
    return (JSON.parse(readFileSync(file, 'utf8')) as { pid: number }).pid; // written by the launcher
  }

  /** Returns the process id of a part; undefined while it is not running. */
  async livingPidOf(name: string): Promise<number | undefined> {
    return (await readRecord(path.join(this.#dataDir, 'run'), name))?.pid;
  }

  /** Returns the resource use of each part. */
  usage(): Promise<Record<string, Usage>> {
    return usageOf({
      launcher: this.pid,
      api: this.pidOf('api'),
      "agents' AI": this.pidOf('agents-ai'),
      worker: this.pidOf('worker'),
      payments: this.pidOf('payments'),
      PostgreSQL: this.pidOf('postgres'),
      Temporal: this.pidOf('temporal'),
    });
  }

  async stop(): Promise<void> {
    if (this.#launcher) await endChild('the platform', this.#launcher, STOP_TIMEOUT_MS);
    await endLeftovers(path.join(this.#dataDir, 'run'));
  }

  #port(name: 'postgres' | 'temporal'): number {
    const file = path.join(this.#dataDir, 'ports.json');
    return (JSON.parse(readFileSync(file, 'utf8')) as Record<typeof name, number>)[name];
  }

  async #untilRunning(launcher: ChildProcess): Promise<void> {
    let output = '';
    let over = false;
    const collect = (chunk: Buffer) => (output += chunk.toString());
    launcher.stdout?.on('data', collect);
    launcher.stderr?.on('data', collect);
    launcher.once('exit', () => (over = true));
    const running = await poll(
      () => Promise.resolve(output.includes('Ctrl-C stops everything.') || over || undefined),
      { timeoutMs: START_TIMEOUT_MS },
    );
    if (running === true && !over) return;
    await this.stop();
    throw new StartFailure(`The platform did not start:\n${output}`);
  }
}
