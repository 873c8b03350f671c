import pLimit from 'p-limit';
import type { Logger } from 'pino';
import type { Database } from '../src/database/database.js';
import type { SecurityEventRuns } from '../temporal/security-event-runs.js';
import { periodically } from './periodically.js';

/** Between two looks. */
const INTERVAL_MS = 1_000;

/** Taken up at a time. */
const MAX_TOGETHER = 100;

/** Calls to Temporal at a time. */
const limit = pLimit(20);

/**
 * Takes those up that are due, each for this process alone. Those that stay unapplied are handed over
 * again: a run that is under way stays, and one that was lost or ended is made up for.
 */
const TAKE = `
  UPDATE risc_events SET due_at = now() + interval '1 minute'
   WHERE id IN (SELECT id FROM risc_events WHERE applied_at IS NULL AND due_at <= now()
                 ORDER BY due_at LIMIT ${MAX_TOGETHER} FOR UPDATE SKIP LOCKED)
  RETURNING id`;

/** What hands security events to their workflows. */
export interface SecurityEventHandOver {
  readonly database: Database;
  readonly runs: Pick<SecurityEventRuns, 'start'>;
  readonly log: Logger;
}

/** Hands over what was received, again and again until the signal aborts. */
export function handOverSecurityEventsPeriodically(
  parts: SecurityEventHandOver,
  signal: AbortSignal,
): Promise<void> {
  const work = async () => {
    while (!signal.aborted && (await handOverSecurityEvents(parts)) === MAX_TOGETHER);
  };
  const failure = 'security events are not handed over yet, which is tried again';
  return periodically({ everyMs: INTERVAL_MS, failure, log: parts.log, work }, signal);
}

/**
 * Hands those that are due to their workflows. Any number of processes may do so at once.
 *
 * @returns how many.
 * @throws UnavailableError when Temporal cannot be reached: they are due again.
 */
export async function handOverSecurityEvents({
  database,
  runs,
}: SecurityEventHandOver): Promise<number> {
  const tenant = database.asPlatform();
  const due = await tenant.query<{ id: string }>(TAKE);
  const handed = await Promise.allSettled(due.map(({ id }) => limit(() => runs.start(id))));
  const failed = handed.flatMap((each, index) =>
    each.status === 'rejected' ? [{ id: due[index]?.id, reason: each.reason as unknown }] : [],
  );
  if (failed.length > 0) {
    const ids = failed.map(({ id }) => id);
    await tenant.query('UPDATE risc_events SET due_at = now() WHERE id = ANY ($ids)', { ids });
    throw failed[0]?.reason;
  }
  return due.length;
}
