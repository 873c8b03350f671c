import { stopping } from '../../dev/processes/stopping.js';

type Cleanup = () => Promise<void> | void;

/** Registers a cleanup for the end of the benchmark. */
export type AtEnd = (cleanup: Cleanup) => void;

/** Runs a benchmark and then its cleanups in reverse order, even after a failure or a signal. */
export async function runBenchmark(benchmark: (atEnd: AtEnd) => Promise<void>): Promise<never> {
  const cleanups: Cleanup[] = [];
  const interrupted = new Promise<never>((_, reject) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.on(signal, () => reject(new Error(`ended by ${signal}`)));
    }
  });
  let code = 0;
  try {
    await Promise.race([benchmark((cleanup) => cleanups.push(cleanup)), interrupted]);
  } catch (error) {
    console.error(error instanceof Error ? (error.stack ?? error.message) : error);
    code = 1;
  }
  for (const cleanup of cleanups.reverse()) {
    try {
      await cleanup();
    } catch (error) {
      console.error(error);
      code = 1;
    }
  }
  stopping.abort();
  process.exit(code);
}
