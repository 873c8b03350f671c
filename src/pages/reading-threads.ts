import { readFileSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { Turns } from '../turns.js';
import { TooComplexError } from './page-error.js';
import type { FetchedPage, PageReadings, Reading } from './read-page.js';
import type { ReadingResult, ReadingTask } from './reading-thread.js';

/** Milliseconds between two looks at how much processor time a page has taken. */
const LOOK_MS = 100;

/** What one page may take. */
export interface ReadingBounds {
  /** Milliseconds of a processor. */
  readonly processorMs: number;
  readonly memoryMb: number;
  /** Pages at a time. */
  readonly threads: number;
}

const BOUNDS: ReadingBounds = { processorMs: 5_000, memoryMb: 512, threads: 2 };

/** Reads pages in threads of their own, which end when a page takes more than it may. */
export class ReadingThreads {
  readonly #program: URL;
  readonly #bounds: ReadingBounds;
  readonly #turns: Turns;
  readonly #idle: ReadingThread[] = [];
  readonly #all = new Set<ReadingThread>();

  /** @param program of a thread, as it was built. */
  constructor(program: URL, bounds: Partial<ReadingBounds> = {}) {
    this.#program = program;
    this.#bounds = { ...BOUNDS, ...bounds };
    this.#turns = new Turns(this.#bounds.threads);
  }

  /**
   * @param owner whose page it is: one owner's pages are in nobody else's way.
   * @throws TooComplexError; the signal's reason when it aborts.
   */
  read<R extends Reading>(
    page: FetchedPage,
    reading: R,
    { owner, signal }: { readonly owner: string; readonly signal: AbortSignal },
  ): Promise<PageReadings[R]> {
    return this.#turns.run({ owner, isUrgent: true, signal }, async () => {
      const thread = this.#idle.pop() ?? this.#start();
      try {
        // A thread answers what it was asked.
        const value = (await thread.ask({ page, reading }, signal)) as PageReadings[R];
        this.#idle.push(thread);
        return value;
      } catch (error) {
        if (thread.isUsable) this.#idle.push(thread);
        else await this.#end(thread);
        throw error;
      }
    });
  }

  async close(): Promise<void> {
    await Promise.all([...this.#all].map((thread) => this.#end(thread)));
  }

  #start(): ReadingThread {
    const thread = new ReadingThread(this.#program, this.#bounds);
    this.#all.add(thread);
    return thread;
  }

  async #end(thread: ReadingThread): Promise<void> {
    this.#all.delete(thread);
    await thread.end();
  }
}

class ReadingThread {
  isUsable = true;
  readonly #worker: Worker;
  readonly #processorMs: number;
  #number: string | undefined;

  constructor(program: URL, { memoryMb, processorMs }: ReadingBounds) {
    this.#processorMs = processorMs;
    this.#worker = new Worker(program, {
      // It has nothing of ours: no settings, and no secrets among them.
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: memoryMb, maxYoungGenerationSizeMb: 64 },
      stdin: false,
      stdout: true,
      stderr: true,
    });
    this.#worker.unref();
    // Without a page nobody else listens; a thread that ends then is not used again.
    this.#worker.on('error', () => (this.isUsable = false));
    this.#worker.on('exit', () => (this.isUsable = false));
    this.#worker.on('message', (result: ReadingResult) => {
      if ('thread' in result) this.#number = result.thread;
    });
  }

  async end(): Promise<void> {
    this.isUsable = false;
    await this.#worker.terminate();
  }

  ask(task: ReadingTask, signal: AbortSignal): Promise<PageReadings[Reading]> {
    const worker = this.#worker;
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      let spent: Spent | undefined;
      const settle = (end: () => void) => {
        clearInterval(looking);
        signal.removeEventListener('abort', abort);
        worker.off('message', receive);
        worker.off('error', fail);
        worker.off('exit', fail);
        end();
      };
      /** Ends the thread with its task. */
      const give = (error: unknown) => {
        this.isUsable = false;
        settle(() => reject(error instanceof Error ? error : new Error('Given up')));
      };
      const fail = (cause: unknown) => give(new TooComplexError({ cause }));
      const abort = () => give(signal.reason);
      const receive = (result: ReadingResult) => {
        if ('thread' in result) return;
        if ('value' in result) return settle(() => resolve(result.value));
        const error = result.isTooComplex ? new TooComplexError() : new Error(result.failure);
        settle(() => reject(error));
      };
      const looking = setInterval(() => {
        const now = this.#spent();
        spent ??= now;
        if (spent.by === now.by && now.ms - spent.ms > this.#processorMs) fail(undefined);
        else if (spent.by !== now.by) spent = now;
      }, LOOK_MS);
      signal.addEventListener('abort', abort, { once: true });
      worker.on('message', receive);
      worker.once('error', fail);
      worker.once('exit', fail);
      worker.postMessage(task);
    });
  }

  /** What the thread has used of a processor; where the system does not say it, the time that it was busy. */
  #spent(): Spent {
    if (this.#number !== undefined) {
      const [ns] = readFileSync(`/proc/self/task/${this.#number}/schedstat`, 'latin1').split(' ');
      return { by: 'system', ms: Number(ns) / 1e6 };
    }
    return { by: 'loop', ms: this.#worker.performance.eventLoopUtilization().active };
  }
}

interface Spent {
  readonly by: 'system' | 'loop';
  readonly ms: number;
}
