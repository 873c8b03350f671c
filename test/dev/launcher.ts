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

/** One run of the real `npm start`, seen as a person at the terminal sees it. */
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

  /** Waits until a text was printed. @throws with the whole output when it was not. */
  async printed(text: string, timeoutMs = 180_000): Promise<void> {
    let over = false;
    void this.ended.then(() => (over = true));
    const shown = () =>
      Promise.resolve(this.#output.includes(text) ? true : over ? false : undefined);
    if ((await poll(shown, { timeoutMs })) === true) return;
    throw new Error(`"${text}" was not printed, but:\n${this.#output}`);
  }
}

/** A data folder and ports of a test's own, with everything that was started on them. */
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

  /** Where its installation is remembered beside those of others. */
  get stateHome(): string {
    return path.dirname(this.dataDir);
  }

  /** Once it has been started. */
  get encryptionKey(): Buffer {
    return Buffer.from(loadSecrets(this.dataDir).encryptionKey, 'base64');
  }

  /**
   * @param prefix a program, with arguments, that runs it: in another network, say.
   * @param clone the folder whose `npm start` it is.
   */
  start(
    env: NodeJS.ProcessEnv = {},
    prefix: readonly string[] = [],
    clone = projectRoot,
  ): Launcher {
    const script = path.join(clone, 'scripts', 'start.mjs');
    return this.#launch(env, [...prefix, process.execPath, script]);
  }

  /** By npm, which puts itself and a shell before it. */
  startByNpm(script: 'start' | 'summarizer'): Launcher {
    return this.#launch({}, ['npm', 'run', script]);
  }

  /** A program of ours beside the platform that runs here: `npm run <name>` with a colon in its name. */
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
      // Rules take a second or two to set and to try, and stay when it is killed.
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

  /** The processes that are recorded as running now. */
  async processes(): Promise<(ProcessIdentity & { name: string })[]> {
    const runDir = path.join(this.dataDir, 'run');
    // Folder and records come and go with the processes.
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

  /** Ends whatever still runs and removes the folder. */
  async close(): Promise<void> {
    for (const launcher of this.#launchers) {
      launcher.kill('SIGTERM');
      await launcher.ended;
    }
    await endLeftovers(path.join(this.dataDir, 'run'));
    await rm(path.dirname(this.dataDir), { recursive: true, force: true, maxRetries: 3 });
  }
}

/** Which of these processes are still there. */
export async function survivors(of: readonly (ProcessIdentity & { name: string })[]) {
  const alive = await Promise.all(of.map(isAlive));
  return of.filter((_, index) => alive[index]).map(({ name }) => name);
}

/** What to take for a file that is not there; any other failure stays one. */
function ifMissing<T>(instead: T): (error: NodeJS.ErrnoException) => T {
  return (error) => {
    if (error.code === 'ENOENT') return instead;
    throw error;
  };
}
