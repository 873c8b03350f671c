import type { Logger } from 'pino';
import type { Database } from '../src/database/database.js';
import type { SecurityEventRuns } from '../temporal/security-event-runs.js';
import {
  callsToTemporal,
  handOver,
  handOverPeriodically,
  MAX_TOGETHER,
  type Handed,
} from './hand-over.js';

const limit = callsToTemporal();

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
export const handOverSecurityEventsPeriodically = (
  parts: SecurityEventHandOver,
  signal: AbortSignal,
): Promise<void> => handOverPeriodically(parts, handed(parts), signal);

/**
 * Hands those that are due to their workflows. Any number of processes may do so at once.
 *
 * @returns how many.
 * @throws UnavailableError when Temporal cannot be reached: they are due again.
 */
export const handOverSecurityEvents = (parts: SecurityEventHandOver): Promise<number> =>
  handOver(parts.database, handed(parts));

const handed = ({ runs }: SecurityEventHandOver): Handed => ({
  table: 'risc_events',
  take: TAKE,
  limit,
  failure: 'security events are not handed over yet, which is tried again',
  start: (id) => runs.start(id),
});
