import cluster, { type Worker } from 'node:cluster';
import type { Logger } from 'pino';
import { pause } from '../../lib/pause.js';
import { reportNotice, reportReady } from './process-lifecycle.js';

/** Milliseconds before a process that has ended is replaced; doubled with each further end. */
const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 30_000;
/** Milliseconds after which a process counts as stable. */
const STABLE_MS = 60_000;
/** Milliseconds to end after a signal: longer than a listener takes to close. */
const END_MS = 25_000;

/** A failure of a process that ended before it served. */
export class ClusterStartError extends Error {
  override readonly name = 'ClusterStartError';
}

/** True in each of the processes that share ports, and false where only one process serves. */
export const sharesPorts = (): boolean => cluster.isWorker;

interface ClusterParts {
  readonly ended: Promise<void>;
  readonly log: Logger;
  /** Is called with the number of processes that serve, at each change. */
  readonly onServing?: (count: number) => void;
}

/**
 * Runs this program in several processes that share the ports of their listeners, until `ended`. A process
 * that ends is replaced. @throws ClusterStartError if one ends before all serve for the first time.
 */
export async function runCluster(
  processes: number,
  { ended, log, onServing }: ClusterParts,
): Promise<void> {
  const ending = new AbortController();
  const notices = new Set<string>();
  const report = (notice: string) => {
    if (!notices.has(notice)) reportNotice(notice);
    notices.add(notice);
  };
  const changed = () => onServing?.(slots.filter((slot) => slot.serves).length);
  const slots = Array.from({ length: processes }, () => new Slot(report, changed));
  try {
    const all = Promise.all(slots.map((slot) => slot.start()));
    const serves = await Promise.race([all.then(() => true), ended.then(() => false)]);
    if (!serves) return;
    reportReady();
    await Promise.race([ended, ...slots.map((slot) => slot.keep(ending.signal, log))]);
  } finally {
    ending.abort();
    await Promise.all(slots.map((slot) => slot.end()));
  }
}

/** One of the processes, and its replacements. */
class Slot {
  #worker: Worker | undefined;
  #exited: Promise<string> = Promise.resolve('');

  #serves = false;

  constructor(
    private readonly report: (notice: string) => void,
    private readonly changed: () => void,
  ) {}

  /** Reports whether the current process serves. */
  get serves(): boolean {
    return this.#serves;
  }

  /** Starts a process. @throws ClusterStartError if the process ends before it serves. */
  async start(): Promise<void> {
    const worker = cluster.fork();
    this.#worker = worker;
    let problem: string | undefined;
    const ready = new Promise<'ready'>((resolve) => {
      worker.on('message', (message: unknown) => {
        if (typeof message !== 'object' || message === null) return;
        if ('ready' in message) resolve('ready');
        else if ('notice' in message) this.report(String(message.notice));
        else if ('problem' in message) problem = String(message.problem);
      });
    });
    this.#exited = new Promise((resolve) => {
      worker.once('exit', (code, signal) => resolve(signal ?? `code ${code}`));
      worker.once('error', (error) => resolve(error.message)); // not started
    });
    const first = await Promise.race([ready, this.#exited]);
    if (first === 'ready') {
      this.#setServes(true);
      void this.#exited.then(() => this.#setServes(false));
      return;
    }
    throw new ClusterStartError(problem ?? `a process ended before it served (${first})`);
  }

  /** Replaces the process each time that it ends, with growing delays. */
  async keep(signal: AbortSignal, log: Logger): Promise<void> {
    let delayMs = FIRST_DELAY_MS;
    for (;;) {
      const since = performance.now();
      const reason = await this.#exited;
      if (signal.aborted) return;
      if (performance.now() - since > STABLE_MS) delayMs = FIRST_DELAY_MS;
      log.error({ reason }, 'a process that shares the ports has ended and is replaced');
      await pause(delayMs, signal);
      if (signal.aborted) return;
      delayMs = Math.min(delayMs * 2, LONGEST_DELAY_MS);
      await this.start().catch((error: unknown) => log.error({ err: error }, 'no replacement'));
    }
  }

  #setServes(serves: boolean): void {
    this.#serves = serves;
    this.changed();
  }

  /** Ends the process, by force if it takes longer than `END_MS`. */
  async end(): Promise<void> {
    const worker = this.#worker?.process;
    worker?.kill('SIGTERM');
    const late = setTimeout(() => worker?.kill('SIGKILL'), END_MS);
    await this.#exited;
    clearTimeout(late);
  }
}
