import { destination, pino } from 'pino';
import { LOG_SERIALIZERS } from './log.js';

/** Runs a process's main function and reports a failure; disconnects from the launcher, to let it end. */
export async function runProcess(main: () => Promise<void>): Promise<void> {
  try {
    await main();
  } catch (error) {
    reportFailure(error);
    process.exitCode = 1;
  }
  if (process.connected) process.disconnect();
}

/** Resolves on a signal to end, or when the channel to the launcher closes because it has ended. */
export function onShutdown(): Promise<void> {
  return new Promise((resolve) => {
    process.once('SIGTERM', () => resolve());
    process.once('SIGINT', () => resolve());
    process.once('disconnect', () => resolve());
  });
}

/** Reports to the launcher, if any, that this process is ready. */
export function reportReady(): void {
  notifyLauncher({ ready: true });
}

/** Sends a message to the launcher's terminal. */
export function reportNotice(notice: string): void {
  notifyLauncher({ notice });
}

/** Reports why this process ends: to log and launcher, and as a sentence on standard error. */
function reportFailure(error: unknown): void {
  const problem = error instanceof Error ? error.message : String(error);
  // The process may have no logger yet, and must not end before the line is written.
  pino({ serializers: LOG_SERIALIZERS }, destination({ dest: 1, sync: true })).fatal(
    { err: error },
    problem,
  );
  console.error(problem);
  notifyLauncher({ problem });
}

/** Sends a message to the launcher, unless it has ended; that is no failure of this process. */
function notifyLauncher(message: Readonly<Record<string, string | boolean>>): void {
  if (process.connected) process.send?.(message);
}
