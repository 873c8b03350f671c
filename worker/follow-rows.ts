import type { Logger } from 'pino';
import { UnavailableError } from '../src/lib/errors.js';
import type { TableChanges } from '../src/platform/database/row-changes.js';
import { periodically } from '../src/platform/process/periodically.js';

const INTERVAL_MS = 15_000;

/** Milliseconds between two checks for lost schedules. */
const LOST_INTERVAL_MS = 60 * 60_000;

/** Maximum number of schedules of one pass, and of concurrent calls to Temporal. */
const MAX_TOGETHER = 200;
const MAX_CALLS = 10;

/** Rows that each have a schedule in Temporal, which follows the row. */
export interface FollowedRows<Row> {
  /** Returns rows whose schedule may differ, oldest change first. */
  readonly find: (most: number) => Promise<readonly Row[]>;
  /** Updates the schedule. No database lock is held during the call. @throws UnavailableError */
  readonly apply: (row: Row) => Promise<void>;
  /** Marks the schedule as applied if the row is unchanged; otherwise another worker may have been overwritten. */
  readonly note: (row: Row) => Promise<void>;
  /** Handles a row that Temporal refuses; the others follow. */
  readonly refuse: (row: Row, error: unknown) => Promise<void>;
  /** Marks rows whose schedules are lost, so that they are found. */
  readonly noticeLost: () => Promise<void>;
  readonly changes?: TableChanges;
  /** Log line for a failed pass. */
  readonly failure: string;
}

/** Updates the schedules to match the rows, now and periodically until the signal aborts. */
export function followRowsPeriodically<Row>(
  rows: FollowedRows<Row>,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  const { changes, failure } = rows;
  let lostSoughtAt = Number.NEGATIVE_INFINITY;
  const work = async () => {
    while (!signal.aborted && (await followRows(rows)) === MAX_TOGETHER);
    if (performance.now() - lostSoughtAt < LOST_INTERVAL_MS) return;
    await rows.noticeLost();
    lostSoughtAt = performance.now();
    await followRows(rows);
  };
  return periodically(
    { everyMs: INTERVAL_MS, failure, log, work, ...(changes && { changes }) },
    signal,
  );
}

/**
 * Updates the schedules that may differ from their rows, and returns how many it could update.
 * @throws UnavailableError if Temporal is unreachable: the rest waits for the next pass.
 */
export async function followRows<Row>({
  apply,
  find,
  note,
  refuse,
}: Pick<FollowedRows<Row>, 'apply' | 'find' | 'note' | 'refuse'>): Promise<number> {
  const found = await find(MAX_TOGETHER);
  const waiting = [...found];
  let followed = 0;
  const followInTurn = async () => {
    for (let row = waiting.shift(); row !== undefined; row = waiting.shift()) {
      try {
        await apply(row);
      } catch (error) {
        if (error instanceof UnavailableError) {
          waiting.length = 0;
          throw error;
        }
        await refuse(row, error);
        continue;
      }
      await note(row);
      followed++;
    }
  };
  await Promise.all(Array.from({ length: MAX_CALLS }, followInTurn));
  return followed;
}
