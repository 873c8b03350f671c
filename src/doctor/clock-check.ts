import type { Database } from '../platform/database/database.js';
import { failure, ok, warning, type Finding } from './check.js';

/** Milliseconds of a difference that is named, and of one at which signatures and tokens are refused. */
const NAMED_MS = 2_000;
const REFUSED_MS = 30_000;

/** Compares the clock of this machine with that of the database. */
export async function checkClock(database: Pick<Database, 'call'>): Promise<Finding[]> {
  const before = Date.now();
  const [row] = await database.call<{ now: number }>(
    { text: 'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now' },
    [],
  );
  const after = Date.now();
  return [clockFinding((row?.now ?? after) - (before + after) / 2, (after - before) / 2)];
}

/** @param aheadMs milliseconds by which the database is ahead. @param uncertainMs its maximum error. */
export function clockFinding(aheadMs: number, uncertainMs: number): Finding {
  const least = Math.max(0, Math.abs(aheadMs) - uncertainMs);
  if (least < NAMED_MS) return ok("This machine's clock agrees with that of PostgreSQL.");
  const side = aheadMs > 0 ? 'behind' : 'ahead of';
  const text = `This machine's clock is ${(least / 1_000).toFixed(1)} s ${side} that of PostgreSQL: synchronize both (NTP).`;
  return least < REFUSED_MS ? warning(text) : failure(text);
}
