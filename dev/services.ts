import { setTimeout as sleep } from 'node:timers/promises';
import { lastLines, startProcess } from './processes/process.js';
import { stopping } from './processes/stopping.js';
import { StartFailure } from './failure.js';
import { say } from './report.js';
import type { Running } from './keep-running.js';
import { builtProgram, projectRoot } from './root.js';

const READY_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 30_000;

/** The product's processes, with their programs. */
const PROGRAMS = {
  worker: ['worker', 'main.js'],
  payments: ['worker', 'payments.js'],
  api: ['api', 'main.js'],
  'agents-ai': ['api', 'containers', 'main.js'],
  summarizer: ['api', 'summarizer', 'main.js'],
} as const;

export type ServiceName = keyof typeof PROGRAMS;

export interface ServiceOptions {
  readonly name: ServiceName;
  readonly env: NodeJS.ProcessEnv;
  readonly runDir: string;
}

let lastNotice = '';

/** Prints a notice, unless another process has just sent the same one. */
function sayOnce(notice: string): void {
  if (notice !== lastNotice) say(notice);
  lastNotice = notice;
}

/**
 * Runs a built program of the product as a child. It sends `{ready: true}` when it serves, `{problem: 'a
 * sentence'}` when it cannot, and `{notice: 'a sentence'}` for the person at the terminal. It ends itself
 * when its channel to the launcher closes.
 */
export async function startService({ name, env, runDir }: ServiceOptions): Promise<Running> {
  let settle: (startOutcome: 'ready' | { problem: string }) => void = () => undefined;
  const startOutcome = new Promise<'ready' | { problem: string }>((resolve) => (settle = resolve));
  const service = await startProcess({
    name,
    command: process.execPath,
    args: ['--enable-source-maps', builtProgram(...PROGRAMS[name])],
    env,
    cwd: projectRoot,
    runDir,
    ipc: true,
    onMessage: (message) => {
      if (typeof message !== 'object' || message === null) return;
      if ('ready' in message) settle('ready');
      else if ('problem' in message) settle({ problem: String(message.problem) });
      // The reason of a failed start stays the last line.
      else if ('notice' in message && !stopping.signal.aborted) sayOnce(String(message.notice));
    },
  });
  const stop = () => service.stop(STOP_TIMEOUT_MS);
  const timeUp = new AbortController();
  const outcome = await Promise.race([
    startOutcome,
    service.ended,
    sleep(READY_TIMEOUT_MS, 'was not ready in time', { signal: timeUp.signal }),
  ]);
  timeUp.abort();
  if (outcome === 'ready') return { process: service, stop };
  await stop();
  if (typeof outcome === 'object') throw new StartFailure(outcome.problem);
  throw new StartFailure(
    `The ${name} ${outcome}; the end of ${service.logFile}:\n${lastLines(service.logFile)}`,
  );
}
