import { measureLoad, type Round } from './measured-load.js';

/** Seconds after which a round ends in any case. */
const MAX_ROUND_S = '60';

interface MeasuredServer {
  readonly url: string;
  readonly pid: number;
}

/**
 * Sends the requests of each round to each server in turns, after one round that is not measured, so that V8 has
 * compiled the measured code.
 *
 * @param prepare writes a round's requests to a file, and returns its name.
 * @returns the rounds of each server.
 */
export async function measureInTurns(
  servers: readonly MeasuredServer[],
  { connections, rounds }: { readonly connections: string; readonly rounds: number },
  prepare: () => Promise<string>,
): Promise<readonly Round[][]> {
  const measured: Round[][] = servers.map(() => []);
  for (let round = 0; round <= rounds; round++) {
    const file = await prepare();
    for (const [index, { pid, url }] of servers.entries()) {
      const load = [url, '', connections, MAX_ROUND_S, 'many', '', '[]', file];
      const result = await measureLoad(pid, load);
      if (round > 0) measured[index]?.push(result);
    }
  }
  return measured;
}
