import { describeError } from '../../lib/describe-error.js';

/**
 * Runs what a process is for, to its end. A failure is told and shows in the exit code; then the
 * launcher is let go of, or else it would keep the process alive.
 */
export async function runProcess(main: () => Promise<void>): Promise<void> {
  try {
    await main();
  } catch (error) {
    reportFailure(error);
    process.exitCode = 1;
  }
  if (process.connected) process.disconnect();
}

/**
 * Resolves when this process is told to end: by a signal, or because the launcher that started it
 * is gone, which shows as the end of the channel to it.
 */
export function onShutdown(): Promise<void> {
  return new Promise((resolve) => {
    process.once('SIGTERM', () => resolve());
    process.once('SIGINT', () => resolve());
    process.once('disconnect', () => resolve());
  });
}

/** Tells the launcher, if there is one, that this process serves. */
export function reportReady(): void {
  tellLauncher({ ready: true });
}

/** Tells the launcher's terminal a sentence of interest. */
export function reportNotice(notice: string): void {
  tellLauncher({ notice });
}

/** Tells launcher and log, in one sentence, why this process cannot serve. */
function reportFailure(error: unknown): void {
  const problem = error instanceof Error ? error.message : String(error);
  console.error(describeError(error));
  tellLauncher({ problem });
}

/** A launcher that is gone hears nothing; that is no failure of this process. */
function tellLauncher(message: Readonly<Record<string, string | boolean>>): void {
  if (process.connected) process.send?.(message);
}
