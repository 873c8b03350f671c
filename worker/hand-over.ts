import type { Logger } from 'pino';
import type { Database } from '../src/platform/database/database.js';
import type { AnnouncedTable } from '../src/platform/database/row-changes.js';
import { FairLimiter } from '../src/lib/fair-limiter.js';
import { pause } from '../src/lib/pause.js';
import type { RowStart } from '../temporal/row-runs.js';
import { periodically } from '../src/platform/process/periodically.js';

/** Milliseconds between two polls without a notification. */
const INTERVAL_MS = 1_000;

const MAX_TOGETHER = 100;

/** Maximum number of concurrent calls to Temporal for one kind of row. */
const MAX_CALLS = 20;

/** A kind of row with one run or one step each; all have a `due_at`, and are due when they are inserted. */
export interface Handed {
  readonly table: AnnouncedTable;
  readonly key: 'id' | 'user_id' | 'agent_id';
  /** SQL condition for rows that are not finished. */
  readonly open: string;
  /** Interval after which unfinished rows are handed over again, in case their run was lost or ended. */
  readonly again: '20 seconds' | '30 seconds' | '1 minute' | '5 minutes';
  /** SQL expression for a row's owner, if some owners may have many more rows than others. */
  readonly owner?: string;
  /** SQL expression for the agent of a row that concerns one. */
  readonly agent?: string;
  readonly start: (id: string, how: RowStart) => Promise<unknown>;
  /** Milliseconds for which newly notified rows are left to other processes; 0 by default. */
  readonly patienceMs?: number;
  /** Log line for a failed handover. */
  readonly failure: string;
}

interface Parts {
  readonly database: Database;
  readonly log: Logger;
}

/** Hands rows over as soon as they are inserted, until the signal aborts. */
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
 * Hands due rows to their runs, and returns how many. Each row is locked by one process.
 * @throws the first failure, after all rows were tried; the failed rows are due again.
 */
export async function handOver(
  database: Database,
  { again, agent = 'NULL', key, open, owner = 'NULL', start, table }: Handed,
): Promise<number> {
  const platform = database.asPlatform();
  const due = await platform.query<{ id: string; owner: string | null; agentId: string | null }>(
    `UPDATE ${table} SET due_at = now() + interval '${again}'
      WHERE ${key} = ANY (ARRAY(
        SELECT ${key} FROM ${table} WHERE ${open} AND due_at <= now()
         ORDER BY due_at LIMIT ${MAX_TOGETHER} FOR UPDATE SKIP LOCKED))
      RETURNING ${key} AS id, ${owner} AS owner, ${agent} AS "agentId"`,
  );
  const limiter = new FairLimiter({ atOnce: MAX_CALLS, perOwner: MAX_CALLS });
  const results = await Promise.allSettled(
    due.map((row) =>
      limiter.run({ owner: row.owner ?? '' }, () =>
        start(row.id, { owner: row.owner ?? undefined, agentId: row.agentId ?? undefined }),
      ),
    ),
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
