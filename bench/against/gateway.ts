import { run, lastWords } from '../../dev/processes/run.js';
import { poll } from '../../dev/poll.js';
import { lastLines, startProcess, type EngineCommand } from '../../dev/processes/process.js';
import type { LoadOrder } from '../support/ai/load-order.js';

const START_TIMEOUT_MS = 120_000;
const INSTALL_TIMEOUT_MS = 600_000;

/** Somebody who passes chat completions on to the provider, or the provider itself. */
export interface Gateway extends Pick<LoadOrder, 'url' | 'model' | 'keys' | 'headers'> {
  readonly name: string;
  /** The processes whose CPU counts as its own, by name. */
  readonly pids: Readonly<Record<string, number>>;
}

/** A gateway of somebody else that cannot be measured here, in one sentence. */
export class GatewayMissing extends Error {
  constructor(sentence: string, options?: ErrorOptions) {
    super(sentence, options);
    this.name = 'GatewayMissing';
  }
}

/** @throws GatewayMissing when the program is not there or fails. */
export async function install(name: string, command: string, args: readonly string[]) {
  try {
    await run(command, args, { timeout: INSTALL_TIMEOUT_MS, shell: process.platform === 'win32' });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why = code === 'ENOENT' ? `${command} is not on this machine` : lastWords(error);
    throw new GatewayMissing(`${name} could not be installed: ${why}.`, { cause: error });
  }
}

/**
 * Starts a gateway's own server and waits until it answers.
 *
 * @throws GatewayMissing when it does not.
 */
export async function startServer(
  command: EngineCommand,
  healthUrl: string,
  atEnd: (cleanup: () => Promise<void>) => void,
): Promise<number> {
  const server = await startProcess(command);
  atEnd(() => server.stop(5_000));
  const ready = await poll(async () => (server.hasEnded() ? 'ended' : await answers(healthUrl)), {
    timeoutMs: START_TIMEOUT_MS,
  });
  if (ready === 'ready') return server.pid;
  throw new GatewayMissing(`${command.name} does not start:\n${lastLines(server.logFile)}`);
}

async function answers(url: string): Promise<'ready' | undefined> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(2_000) });
    await response.body?.cancel();
    return response.ok ? 'ready' : undefined;
  } catch {
    return undefined; // not listening yet
  }
}
