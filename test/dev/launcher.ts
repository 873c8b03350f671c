import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { endLeftovers } from '../../dev/processes/process.js';
import { isAlive, type ProcessIdentity } from '../../dev/processes/process-identity.js';
import { chooseUnusualPorts } from '../../dev/kept-ports.js';
import { poll } from '../../dev/poll.js';
import { freePort } from '../../dev/ports.js';
import { projectRoot } from '../../dev/root.js';
import { loadSecrets } from '../../dev/secrets.js';

/** The last line that `npm start` prints once everything runs. */
export const RUNNING = 'Ctrl-C stops everything.';

/** One run of the real `npm start`, as seen at the terminal. */
export class Launcher {
  readonly #child: ChildProcess;
  #output = '';
  readonly ended: Promise<number | null>;

  constructor(env: NodeJS.ProcessEnv, [command = '', ...args]: readonly string[]) {
    this.#child = spawn(command, args, {
      cwd: projectRoot,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const collect = (chunk: Buffer) => (this.#output += chunk.toString());
    this.#child.stdout?.on('data', collect);
    this.#child.stderr?.on('data', collect);
    this.ended = new Promise((resolve) => this.#child.once('close', resolve));
  }

  get output(): string {
    return this.#output;
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /**
   * Waits until a text is printed.
   *
   * @throws with the whole output if the text does not appear in time.
   */
  async printed(text: string, timeoutMs = 180_000): Promise<void> {
    let over = false;
    void this.ended.then(() => (over = true));
    const shown = () =>
      Promise.resolve(this.#output.includes(text) ? true : over ? false : undefined);
    if ((await poll(shown, { timeoutMs })) === true) return;
    throw new Error(`"${text}" was not printed; the output was:\n${this.#output}`);
  }
}

/** A test's own data folder and ports, with all processes started on them. */
export class Place {
  readonly #launchers: Launcher[] = [];

  private constructor(
    readonly dataDir: string,
    readonly webPort: number,
    readonly backendPort: number,
    readonly agentAiPort: number,
  ) {}

  static async make(): Promise<Place> {
    const folder = await mkdtemp(path.join(tmpdir(), 'aps-start-'));
    const dataDir = path.join(folder, 'data');
    await chooseUnusualPorts(dataDir);
    return new Place(dataDir, await freePort(), await freePort(), await freePort());
  }

  /** Folder of the register of installations. */
  get stateHome(): string {
    return path.dirname(this.dataDir);
  }

  /** The key, available once the platform has been started. */
  get encryptionKey(): Buffer {
    return Buffer.from(loadSecrets(this.dataDir).encryptionKey, 'base64');
  }

  /**
   * Starts a launcher.
   *
   * @param prefix a command prefix that runs the launcher, for example in another network.
   * @param clone the folder of the clone whose `npm start` runs.
   */
  start(
    env: NodeJS.ProcessEnv = {},
    prefix: readonly string[] = [],
    clone = projectRoot,
  ): Launcher {
    const script = path.join(clone, 'scripts', 'start.mjs');
    return this.#launch(env, [...prefix, process.execPath, script]);
  }

  /** Starts a script through npm, which adds itself and a shell as parents. */
  startByNpm(script: 'start' | 'summarizer'): Launcher {
    return this.#launch({}, ['npm', 'run', script]);
  }

  /** Starts a script beside the running platform: `npm run <name>` with a colon in its name. */
  startBeside(name: string, ...args: readonly string[]): Launcher {
    return this.#launch({}, [
      process.execPath,
      path.join(projectRoot, 'scripts', 'beside.mjs'),
      name,
      ...args,
    ]);
  }

  #launch(env: NodeJS.ProcessEnv, command: readonly string[]): Launcher {
    const own = {
      ...process.env,
      // Egress rules take a second or two to set and verify, and remain after a kill.
      AGENT_EGRESS: 'open',
      DATA_DIR: this.dataDir,
      XDG_STATE_HOME: this.stateHome,
      WEB_PORT: String(this.webPort),
      BACKEND_PORT: String(this.backendPort),
      AGENT_AI_PORT: String(this.agentAiPort),
      SUMMARIZER_PORT: '0',
      METRICS_PORT: '0',
      AGENT_AI_METRICS_PORT: '0',
      AGENT_RUNTIME_IMAGE: 'no-agent-is-created-here',
      MANAGE_DOCKER: 'never',
      ...env,
    };
    const launcher = new Launcher(own, command);
    this.#launchers.push(launcher);
    return launcher;
  }

  /** Returns the processes that are recorded as running. */
  async processes(): Promise<(ProcessIdentity & { name: string })[]> {
    const runDir = path.join(this.dataDir, 'run');
    // Folder and records disappear with the processes.
    const records = (await readdir(runDir).catch(ifMissing([]))).filter((file) =>
      file.endsWith('.process.json'),
    );
    const running = await Promise.all(
      records.map(async (file) => {
        const text = await readFile(path.join(runDir, file), 'utf8').catch(ifMissing(''));
        if (text === '') return [];
        const identity = JSON.parse(text) as ProcessIdentity;
        return [{ ...identity, name: file.replace('.process.json', '') }];
      }),
    );
    return running.flat();
  }

  /** Ends all running processes and removes the folder. */
  async close(): Promise<void> {
    for (const launcher of this.#launchers) {
      launcher.kill('SIGTERM');
      await launcher.ended;
    }
    await endLeftovers(path.join(this.dataDir, 'run'));
    await rm(path.dirname(this.dataDir), { recursive: true, force: true, maxRetries: 3 });
  }
}

/** Returns the names of those processes that are still alive. */
export async function survivors(of: readonly (ProcessIdentity & { name: string })[]) {
  const alive = await Promise.all(of.map(isAlive));
  return of.filter((_, index) => alive[index]).map(({ name }) => name);
}

/** Returns a handler that replaces a missing file by a value and rethrows other errors. */
function ifMissing<T>(instead: T): (error: NodeJS.ErrnoException) => T {
  return (error) => {
    if (error.code === 'ENOENT') return instead;
    throw error;
  };
}
