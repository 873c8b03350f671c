import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { FairLimiter } from '../lib/fair-limiter.js';
import { TooComplexError } from './page-error.js';
import type { FetchedPage, PageReadings, Reading } from './read-page.js';
import type { ReadingResult, ReadingTask } from './reading-process.js';

/** Milliseconds between two checks of a page's processor time. */
const CHECK_MS = 100;

/** Limits for one page, and for pages at a time. */
export interface ReadingBounds {
  /** Milliseconds of processor time. */
  readonly processorMs: number;
  readonly memoryMb: number;
  /** Pages at a time. */
  readonly processes: number;
}

const BOUNDS: ReadingBounds = { processorMs: 5_000, memoryMb: 512, processes: 2 };

/** Reads pages in child processes, killed at a limit: running out of memory would end this process. */
export class ReadingProcesses {
  readonly #program: URL;
  readonly #bounds: ReadingBounds;
  readonly #limiter: FairLimiter;
  readonly #idle: ReadingProcess[] = [];
  readonly #all = new Set<ReadingProcess>();

  /** @param program the built file of the reading process. */
  constructor(program: URL, bounds: Partial<ReadingBounds> = {}) {
    this.#program = program;
    this.#bounds = { ...BOUNDS, ...bounds };
    this.#limiter = new FairLimiter({ atOnce: this.#bounds.processes });
  }

  /** Reads a page; owners share capacity fairly. @throws TooComplexError; the signal's reason */
  read<R extends Reading>(
    page: FetchedPage,
    reading: R,
    { owner, signal }: { readonly owner: string; readonly signal: AbortSignal },
  ): Promise<PageReadings[R]> {
    return this.#limiter.run({ owner, signal }, async () => {
      const reader = this.#take();
      try {
        // A process answers with the reading that its task names.
        return (await reader.request({ page, reading }, signal)) as PageReadings[R];
      } finally {
        if (reader.isUsable) this.#idle.push(reader);
        else await this.#end(reader);
      }
    });
  }

  async close(): Promise<void> {
    await Promise.all([...this.#all].map((reader) => this.#end(reader)));
  }

  /** Returns an idle process that still runs, or starts a new process. */
  #take(): ReadingProcess {
    for (let reader = this.#idle.pop(); reader; reader = this.#idle.pop()) {
      if (reader.isUsable) return reader;
      this.#all.delete(reader);
    }
    const reader = new ReadingProcess(this.#program, this.#bounds);
    this.#all.add(reader);
    return reader;
  }

  async #end(reader: ReadingProcess): Promise<void> {
    this.#all.delete(reader);
    await reader.end();
  }
}

class ReadingProcess {
  isUsable = true;
  readonly #child: ChildProcess;
  readonly #processorMs: number;

  constructor(program: URL, { memoryMb, processorMs }: ReadingBounds) {
    this.#processorMs = processorMs;
    this.#child = fork(fileURLToPath(program), [], {
      // The child inherits no settings and no secrets.
      env: {},
      execArgv: [`--max-old-space-size=${memoryMb}`],
      // A directory without write access: some systems write a core dump there when memory runs out.
      cwd: path.parse(process.execPath).root,
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    // An idle child must not keep this process running.
    this.#child.unref();
    this.#child.channel?.unref();
    // An idle child has no other listeners; a child that ended must not be used again.
    this.#child.on('error', () => (this.isUsable = false));
    this.#child.on('exit', () => (this.isUsable = false));
  }

  async end(): Promise<void> {
    this.isUsable = false;
    const { exitCode, pid, signalCode } = this.#child;
    if (pid === undefined || exitCode !== null || signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.ref();
    this.#child.kill('SIGKILL');
    await ended;
  }

  request(task: ReadingTask, signal: AbortSignal): Promise<PageReadings[Reading]> {
    const child = this.#child;
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const before = this.#spentMs();
      const settle = (end: () => void) => {
        clearInterval(checking);
        signal.removeEventListener('abort', abort);
        child.off('message', receive);
        child.off('error', give);
        child.off('exit', fail);
        end();
      };
      /** Fails the task and marks the process as unusable. */
      const give = (error: unknown) => {
        this.isUsable = false;
        settle(() => reject(error instanceof Error ? error : new Error('Given up')));
      };
      const fail = () => give(new TooComplexError());
      const abort = () => give(signal.reason);
      const receive = (result: ReadingResult) => {
        if ('value' in result) return settle(() => resolve(result.value));
        const error = result.isTooComplex ? new TooComplexError() : new Error(result.failure);
        settle(() => reject(error));
      };
      // The timer also keeps this process running while a page is being read.
      const checking = setInterval(() => {
        if (this.#spentMs() - before > this.#processorMs) fail();
      }, CHECK_MS);
      signal.addEventListener('abort', abort, { once: true });
      child.on('message', receive);
      child.once('error', give);
      child.once('exit', fail);
      child.send(task, (error) => {
        // A child that has just ended is reported by its `exit` event.
        if (error && child.exitCode === null && child.signalCode === null) give(error);
      });
    });
  }

  /** Returns the child's processor time, or elapsed time if the system does not provide it. */
  #spentMs(): number {
    try {
      const [ns] = readFileSync(`/proc/${this.#child.pid}/schedstat`, 'latin1').split(' ');
      return Number(ns) / 1e6;
    } catch {
      return performance.now();
    }
  }
}
