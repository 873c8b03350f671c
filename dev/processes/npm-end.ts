/** How soon the end of npm is noticed. */
const EVERY_MS = 250;

/**
 * Calls `act` once when the npm that runs this process has ended. npm passes a SIGTERM on to its shell
 * alone, which ends without a word to what it runs. Does nothing where no npm runs this process.
 */
export function onNpmEnd(act: () => void): void {
  if (process.env.npm_lifecycle_event === undefined) return;
  const shell = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === shell) return;
    clearInterval(timer);
    act();
  }, EVERY_MS);
  timer.unref();
}
