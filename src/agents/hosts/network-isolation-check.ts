import type { Database } from '../../platform/database/database.js';
import { cachedFor } from '../../lib/cached-for.js';

/** Milliseconds for which an answer is cached. */
const FRESH_MS = 5_000;

/**
 * Makes a cached check that reports whether the host's worker has confirmed that agents cannot reach the
 * host's own addresses. An unknown state counts as false.
 */
export function networkIsolationCheck(database: Database, host: string): () => Promise<boolean> {
  return cachedFor(FRESH_MS, async () => {
    const egress = await egressOf(database, host).catch(() => undefined);
    return egress === 'guarded';
  });
}

async function egressOf(database: Database, host: string): Promise<string | undefined> {
  const sql = 'SELECT egress FROM hosts WHERE id = $host';
  const [row] = await database.asPlatform().query<{ egress: string }>(sql, { host });
  return row?.egress;
}
