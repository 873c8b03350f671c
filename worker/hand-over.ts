import pLimit from 'p-limit';
import type { Logger } from 'pino';
import type { Database } from '../src/platform/database/database.js';
import type { ToldTable } from '../src/platform/database/row-changes.js';
import { pause } from '../src/lib/pause.js';
import { periodically } from '../src/platform/process/periodically.js';

/** Between two looks where nothing is heard. */
const INTERVAL_MS = 1_000;

/** Rows that one look takes up at a time. */
const MAX_TOGETHER = 100;

/** Calls to Temporal at a time, of one kind of rows. */
const MAX_CALLS = 20;

/** Rows each of which is to have a run; all have `due_at`, and are due when they are written. */
export interface Handed {
  readonly table: ToldTable;
  readonly key: 'id' | 'user_id';
  /** In SQL, which of them are still to be done. */
  readonly open: string;
  /** After which those that are still open are handed over again, in case that a run was lost or ended. */
  readonly again: '20 seconds' | '30 seconds' | '1 minute' | '5 minutes';
  /** In SQL, whose a row is, where some owners may have many more than others. */
  readonly owner?: string;
  readonly start: (id: string, owner: string | undefined) => Promise<unknown>;
  /** Milliseconds for which those that were heard of are left to others; none unless said. */
  readonly patienceMs?: number;
  /** What the log says when they cannot be handed over. */
  readonly failure: string;
}

interface Parts {
  readonly database: Database;
  readonly log: Logger;
}

/** Hands rows over as soon as they are there, again and again until the signal aborts. */
export function handOverPeriodically(
  { database, log }: Parts,
  handed: Handed,
  signal: AbortSignal,
): Promise<void> {
  const { failure, patienceMs = 0 } = handed;
  const work = async () => {
    if (patienceMs > 0) await pause(patienceMs, signal);
    while (!signal.aborted && (await handOver(database, handed)) === MAX_TOGETHER);
  };
  const changes = database.changesOf(handed.table);
  return periodically({ everyMs: INTERVAL_MS, failure, log, changes, work }, signal);
}

/**
 * Hands the rows that are due to their runs, each by one process alone, however many do so at once.
 *
 * @returns how many it took up.
 * @throws what one of them could not be handed over for, when it was tried with all: those are due again.
 */
export async function handOver(
  database: Database,
  { table, key, open, owner = 'NULL', again, start }: Handed,
): Promise<number> {
  const platform = database.asPlatform();
  const due = await platform.query<{ id: string; owner: string | null }>(
    `UPDATE ${table} SET due_at = now() + interval '${again}'
      WHERE ${key} = ANY (ARRAY(
        SELECT ${key} FROM ${table} WHERE ${open} AND due_at <= now()
         ORDER BY due_at LIMIT ${MAX_TOGETHER} FOR UPDATE SKIP LOCKED))
      RETURNING ${key} AS id, ${owner} AS owner`,
  );
  const limit = pLimit(MAX_CALLS);
  const results = await Promise.allSettled(
    due.map((row) => limit(start, row.id, row.owner ?? undefined)),
  );
  const failed = results.flatMap((each, index) =>
    each.status === 'rejected' ? [{ id: due[index]?.id, reason: each.reason as unknown }] : [],
  );
  if (failed.length > 0) {
    const ids = failed.map(({ id }) => id);
    await platform.query(`UPDATE ${table} SET due_at = now() WHERE ${key} = ANY ($ids)`, { ids });
    throw failed[0]?.reason;
  }
  return due.length;
}
