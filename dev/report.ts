/** Prints a line for the person at the terminal. */
export function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Prints a step and, unless it was quick, how long it took. */
export async function step<T>(what: string, work: () => Promise<T>): Promise<T> {
  const started = performance.now();
  say(`${what} ...`);
  const result = await work();
  const took = performance.now() - started;
  if (took > 2_000) say(`  done in ${(took / 1_000).toFixed(1)} s`);
  return result;
}
