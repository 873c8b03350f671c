import { spawn } from 'node:child_process';
import { StartFailure } from '../../dev/failure.js';
import { run } from '../../dev/processes/run.js';

const INSIDE = 'BENCH_OWN_NETWORK';

/**
 * Makes this program run in a network namespace of its own, where its own engine does not disturb another
 * one. The first call restarts the program in the namespace and exits with it.
 */
export async function enterOwnNetwork(): Promise<void> {
  if (process.env[INSIDE] !== undefined) {
    await run('ip', ['link', 'set', 'lo', 'up'], { timeout: 10_000 });
    return;
  }
  if (process.platform !== 'linux' || process.getuid?.() !== 0) {
    throw new StartFailure('This needs a Docker engine of its own: run it as root on Linux.');
  }
  const args = ['--net', process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  const child = spawn('unshare', args, {
    stdio: 'inherit',
    env: { ...process.env, [INSIDE]: 'yes' },
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => child.kill(signal));
  }
  const code = await new Promise<number>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (status) => resolve(status ?? 1));
  });
  process.exit(code);
}
