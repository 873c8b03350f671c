import { poll } from '../../dev/poll.js';
import { lastLines, startProcess, type ServerCommand } from '../../dev/processes/process.js';
import type { LoadOrder } from '../support/ai/load-order.js';
import { AgainstMissing } from './install.js';

const START_TIMEOUT_MS = 120_000;

/** A proxy that forwards chat completions to the provider, or the provider itself. */
export interface Gateway extends Pick<LoadOrder, 'url' | 'model' | 'keys' | 'headers'> {
  readonly name: string;
  /** Processes whose CPU time counts as the gateway's, by name. */
  readonly pids: Readonly<Record<string, number>>;
}

/**
 * Starts a gateway's own server and waits until it answers.
 *
 * @throws AgainstMissing if the server does not start.
 */
export async function startServer(
  command: ServerCommand,
  healthUrl: string,
  atEnd: (cleanup: () => Promise<void>) => void,
): Promise<number> {
  const server = await startProcess(command);
  atEnd(() => server.stop(5_000));
  const ready = await poll(async () => (server.hasEnded() ? 'ended' : await answers(healthUrl)), {
    timeoutMs: START_TIMEOUT_MS,
  });
  if (ready === 'ready') return server.pid;
  throw new AgainstMissing(`${command.name} does not start:\n${lastLines(server.logFile)}`);
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
