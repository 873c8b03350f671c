import type { Database } from '../../platform/database/database.js';
import type { PaymentSessionSettings } from './settings.js';

/** Sessions closed in one transaction, and maximum number of transactions of one call. */
const BATCH = 100;
const MAX_BATCHES = 50;

/** Seconds over which the settlements of sessions closed together are spread. */
const SPREAD_S = 30;

/** Divisor of a hold's lifetime: a session closes when this part of it is left. */
const MARGIN = 4;

/**
 * Starts closing sessions at their maximum age, and all sessions well before their holds expire, so that
 * debits stop and settlements finish in time. Concurrent calls close different sessions.
 *
 * @returns the number of sessions.
 */
export async function closeAgedSessions(
  database: Database,
  { holdMs, maxAgeMs }: Pick<PaymentSessionSettings, 'holdMs' | 'maxAgeMs'>,
): Promise<number> {
  const seconds = { age: maxAgeMs / 1_000, margin: holdMs / 1_000 / MARGIN };
  let closed = 0;
  for (let batches = 0; batches < MAX_BATCHES; batches += 1) {
    const rows = await database.asPlatform().query(CLOSE, seconds);
    closed += rows.length;
    if (rows.length < BATCH) break;
  }
  return closed;
}

const CLOSE = `
  UPDATE payment_sessions
     SET state = 'settling', closing_at = now(),
         due_at = now() + random() * interval '${SPREAD_S} seconds'
   WHERE state = 'active' AND id = ANY (ARRAY(
     SELECT id FROM payment_sessions
      WHERE state = 'active'
        AND (opened_at < now() - make_interval(secs => $age::double precision)
             OR hold_expires_at < now() + make_interval(secs => $margin::double precision))
      LIMIT ${BATCH} FOR NO KEY UPDATE SKIP LOCKED))
   RETURNING id`;
