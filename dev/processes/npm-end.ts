/** Milliseconds between two checks for the end of npm. */
const EVERY_MS = 250;

/**
 * Calls `act` once when the npm that runs this process has ended. npm forwards a SIGTERM only to its
 * shell, which ends without signalling its children. Does nothing if npm does not run this process.
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
