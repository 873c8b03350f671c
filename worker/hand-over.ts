import pLimit, { type LimitFunction } from 'p-limit';
import type { Logger } from 'pino';
import type { Database } from '../src/database/database.js';
import { periodically } from './periodically.js';

/** Between two looks. */
const INTERVAL_MS = 1_000;

/** Rows that one look takes up at a time. */
export const MAX_TOGETHER = 100;

/** Calls to Temporal at a time, of one kind of rows. */
export const callsToTemporal = (): LimitFunction => pLimit(20);

/** Rows of a table each of which is to have a run. */
export interface Handed {
  readonly table: 'mails' | 'risc_events';
  /** Takes up to `MAX_TOGETHER` of them that are due, each for this process alone, and returns their ids. */
  readonly take: string;
  readonly start: (id: string) => Promise<void>;
  readonly limit: LimitFunction;
  /** What the log says when they cannot be handed over. */
  readonly failure: string;
}

/** Hands rows over, again and again until the signal aborts. */
export function handOverPeriodically(
  { database, log }: { readonly database: Database; readonly log: Logger },
  handed: Handed,
  signal: AbortSignal,
): Promise<void> {
  const { failure } = handed;
  const work = async () => {
    while (!signal.aborted && (await handOver(database, handed)) === MAX_TOGETHER);
  };
  return periodically({ everyMs: INTERVAL_MS, failure, log, work }, signal);
}

/**
 * Hands the rows that are due to their runs. Any number of processes may do so at once.
 *
 * @returns how many it took up.
 * @throws UnavailableError when Temporal cannot be reached: they are due again.
 */
export async function handOver(
  database: Database,
  { table, take, start, limit }: Handed,
): Promise<number> {
  const platform = database.asPlatform();
  const due = await platform.query<{ id: string }>(take);
  const results = await Promise.allSettled(due.map(({ id }) => limit(start, id)));
  const failed = results.flatMap((each, index) =>
    each.status === 'rejected' ? [{ id: due[index]?.id, reason: each.reason as unknown }] : [],
  );
  if (failed.length > 0) {
    const ids = failed.map(({ id }) => id);
    await platform.query(`UPDATE ${table} SET due_at = now() WHERE id = ANY ($ids)`, { ids });
    throw failed[0]?.reason;
  }
  return due.length;
}
