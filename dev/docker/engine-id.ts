import { run } from '../processes/run.js';

/** Reports whether Docker keeps its id in a file of the machine, shared by all engines (up to version 22). */
export async function keepsIdOutsideData(): Promise<boolean> {
  const said = await run('dockerd', ['--version'], { timeout: 10_000 });
  return Number(/version (\d+)/.exec(said)?.[1]) < 23;
}
