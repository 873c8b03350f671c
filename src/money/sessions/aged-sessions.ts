import type { Database } from '../../platform/database/database.js';
import type { PaymentSessionSettings } from './settings.js';

/** Sessions of one transaction, and how many times as many one call closes. */
const BATCH = 100;
const MAX_BATCHES = 50;

/** Those that end together are settled within so many seconds, not all at once. */
const SPREAD_S = 30;

/** The share of its time by which a hold is closed before it expires. */
const MARGIN = 4;

/**
 * Has those sessions closed that are as old as they get, and in any case before their holds expire: by
 * then nothing can be debited, and all is settled. Several at a time take different ones.
 *
 * @returns how many.
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
