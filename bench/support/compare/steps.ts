import { spawn, type ChildProcess } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';

/** Milliseconds in which a benchmark stops its platform. */
const GRACE_MS = 60_000;
/** Milliseconds for one program: the longest benchmark takes ten minutes. */
const TIMEOUT_MS = 3_600_000;

/** Runs programs one after another; an interrupt ends the current program with its group. */
export class Steps {
  #current: { child: ChildProcess; closed: Promise<unknown> } | undefined;
  #isEnded = false;

  /**
   * Runs a program to its end.
   *
   * @returns its standard output.
   * @throws Error with the output if the program fails.
   */
  async run(cwd: string, args: readonly string[]): Promise<string> {
    if (this.#isEnded) throw new Error('The comparison was interrupted');
    // A group of its own, so that a Ctrl-C in the terminal arrives once, through `end`.
    const child = spawn(process.execPath, args, {
      cwd,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: TIMEOUT_MS,
    });
    let output = '';
    let errors = '';
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
    const closed = new Promise<number | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', resolve);
    });
    this.#current = { child, closed };
    const code = await closed;
    this.#current = undefined;
    if (code === 0) return output;
    throw new Error(`${args.join(' ')} in ${cwd} ended with code ${code}:\n${output}${errors}`);
  }

  /** Ends the current program and waits until it has stopped all that it started. */
  async end(): Promise<void> {
    this.#isEnded = true;
    const { child, closed } = this.#current ?? {};
    if (child?.pid === undefined) return;
    const gone = Promise.allSettled([closed]);
    signalGroup(child.pid, 'SIGTERM');
    await Promise.race([gone, sleep(GRACE_MS, undefined, { ref: false })]);
    signalGroup(child.pid, 'SIGKILL');
    await gone;
  }
}

function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(process.platform === 'win32' ? pid : -pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error; // ended already
  }
}
