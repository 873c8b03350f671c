import { forkUntilMessage } from './child.js';
import { usageOf } from './process-tree.js';
import { figure, median } from './statistics.js';

interface Load {
  readonly answered: number;
  readonly failed: number;
  /** Statuses of the failed requests. */
  readonly statuses: readonly number[];
  readonly perSecond: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
}

/** The load of one round on one server, and the server's CPU time for each answer. */
export interface Round extends Load {
  readonly cpuMicroseconds: number;
}

/**
 * Runs a load and measures the server's CPU time.
 *
 * @param pid of the server.
 * @param args of the program `load`: the address first, and the seconds in the fourth place.
 * @throws if a request failed.
 */
export async function measureLoad(pid: number, args: readonly string[]): Promise<Round> {
  const cpu = async () => (await usageOf({ server: pid })).server?.cpu ?? Number.NaN;
  const before = await cpu();
  const { message } = await forkUntilMessage<Load>('load', args, { seconds: Number(args[3]) });
  if (message.failed > 0) {
    throw new Error(`${args[0]} failed ${message.failed} times (${message.statuses.join(', ')}).`);
  }
  const used = (await cpu()) - before;
  return { ...message, cpuMicroseconds: (used / message.answered) * 1e6 };
}

/** Returns the cells of a table row: the name, and medians of rate, p50, p99 and CPU time for each answer. */
export function loadCells(name: string, rounds: readonly Round[]): string[] {
  const of = (value: (round: Round) => number) => figure(median(rounds.map(value)));
  return [
    name,
    of(({ perSecond }) => perSecond),
    of(({ p50 }) => p50),
    of(({ p99 }) => p99),
    of(({ cpuMicroseconds }) => cpuMicroseconds),
  ];
}
